"""The half-normal distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform

__all__ = ["HalfNormal"]


class Half(TransformedDistribution):
    """The absolute value of a number that is distributed symmetrically around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _symmetric: Any

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        base = self._symmetric(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        return self.base_dist.scale

    @property
    def mode(self) -> Tensor:
        return taeda.zeros_like(self.scale)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        value = taeda.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device)
        log_prob = self.base_dist.log_prob(value) + math.log(2)
        return taeda.where(value >= 0, log_prob, -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(Half):
    """|x| for x of ``Normal(0, scale)``.

    >>> from taeda.distributions import HalfNormal
    >>> HalfNormal(1.).mean
    tensor(0.7979)
    """

    _symmetric = Normal

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.pow(2) * (1 - 2 / math.pi)
