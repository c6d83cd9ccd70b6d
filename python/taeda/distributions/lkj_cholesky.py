"""The LKJ distribution of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution, Expandable
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Expandable, Distribution):
    """Cholesky factors L of dim x dim correlation matrices, ``p(L L^T) ~ det(L L^T)^(eta - 1)``.

    eta, the concentration, is 1 for the uniform distribution. Draws are made row by row, by the
    onion method (Lewandowski, Kurowicka & Joe, Generating random correlation matrices, 2009).

    >>> from taeda.distributions import LKJCholesky
    >>> LKJCholesky(2, 1.).log_prob(torch.eye(2))
    tensor(-0.6931)
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _batched = ("_beta",)
    _kept = ("dim",)

    def __init__(
        self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # Row i has a squared length off the diagonal of Beta(i / 2, eta + (dim - 1 - i) / 2).
        marginal = self.concentration + 0.5 * (dim - 2)
        like: dict[str, Any] = {
            "dtype": self.concentration.dtype,
            "device": self.concentration.device,
        }
        offset = taeda.arange(dim - 1, **like)
        offset = taeda.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.size(), Size((dim, dim)), validate_args)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        y = self._beta.sample(sample_shape).unsqueeze(-1)
        shape = self._extended_shape(sample_shape)
        directions = taeda.randn(shape, dtype=y.dtype, device=y.device).tril(-1)
        directions = directions / directions.norm(dim=-1, keepdim=True)
        directions[..., 0, :].fill_(0.0)
        w = taeda.sqrt(y) * directions
        tiny = taeda.finfo(w.dtype).tiny
        diagonal = taeda.clamp(1 - taeda.sum(w**2, dim=-1), min=tiny).sqrt()
        return w + taeda.diag_embed(diagonal)

    def log_prob(self, value: Tensor) -> Tensor:
        """``sum_i (2 (eta - 1) + dim - i) log L_ii``, i = 2 .. dim, minus the log normalizer.

        The Jacobian from matrices to factors is among it.
        """
        self._checked(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        i = taeda.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - i
        unnormalized = taeda.sum(order * diagonal.log(), dim=-1)
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        numerator = taeda.mvlgamma(alpha - 0.5, n)
        constant = 0.5 * n * math.log(math.pi)
        return unnormalized - (constant + numerator - taeda.lgamma(alpha) * n)
