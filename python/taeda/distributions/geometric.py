"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor
from taeda.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from .distribution import Distribution, ProbsOrLogits
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsOrLogits, Distribution):
    """The number k of failures before a success of probability p: ``p (1 - p)^k``.

    >>> from taeda.distributions import Geometric
    >>> Geometric(0.5).log_prob(torch.tensor([0., 1.])).exp()
    tensor([0.5000, 0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            value, valid = self.probs, self.probs > 0
            if not valid.all():
                raise ValueError(
                    f"Expected parameter probs ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to be positive but found "
                    f"invalid values:\n{value.data[~valid]}"
                )

    @property
    def mean(self) -> Tensor:
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        return taeda.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape, tiny = self._extended_shape(sample_shape), taeda.finfo(self.probs.dtype).tiny
        with taeda.no_grad():
            u = self.probs.new(shape).uniform_(tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)  # 0 log(0) is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        entropy = binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")
        return entropy / self.probs
