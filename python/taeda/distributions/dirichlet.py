"""The Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.autograd import Function
from taeda.autograd.function import once_differentiable
from taeda.nn import functional as F

from . import constraints
from .distribution import Expandable
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x: Tensor, concentration: Tensor, grad_output: Tensor) -> Tensor:
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = taeda._dirichlet_grad(x, concentration, total)
    return grad * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    """A draw with its implicit gradient: each coordinate is a beta number."""

    @staticmethod
    def forward(ctx: Any, concentration: Tensor) -> Tensor:
        x = taeda._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> Tensor:
        x, concentration = ctx.saved_tensors
        return _Dirichlet_backward(x, concentration, grad_output)


class Dirichlet(Expandable, ExponentialFamily):
    """Points of the simplex, density proportional to ``prod_k x_k^(a_k - 1)``.

    a, the concentration, has the classes in its last dimension.

    >>> from taeda.distributions import Dirichlet
    >>> Dirichlet(torch.tensor([1., 3.])).mean
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _Dirichlet.apply(self.concentration.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return (
            taeda.xlogy(self.concentration - 1.0, value).sum(-1)
            + taeda.lgamma(self.concentration.sum(-1))
            - taeda.lgamma(self.concentration).sum(-1)
        )

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self) -> Tensor:
        less_one = (self.concentration - 1).clamp(min=0.0)
        mode = less_one / less_one.sum(-1, True)
        at_corners = (self.concentration < 1).all(dim=-1)
        corner = F.one_hot(mode[at_corners].argmax(dim=-1), less_one.shape[-1])
        mode[at_corners] = corner.to(mode)
        return mode

    @property
    def variance(self) -> Tensor:
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def entropy(self) -> Tensor:
        k, total = self.concentration.size(-1), self.concentration.sum(-1)
        return (
            taeda.lgamma(self.concentration).sum(-1)
            - taeda.lgamma(total)
            - (k - total) * taeda.digamma(total)
            - ((self.concentration - 1.0) * taeda.digamma(self.concentration)).sum(-1)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.concentration,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return x.lgamma().sum(-1) - taeda.lgamma(x.sum(-1))
