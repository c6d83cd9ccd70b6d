"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from .distribution import Distribution, LocScale
from .utils import _full_like_batch

__all__ = ["Cauchy"]


class Cauchy(LocScale, Distribution):
    """Density ``1 / (pi scale (1 + ((x - loc) / scale)^2))``: the ratio of two normal numbers.

    >>> from taeda.distributions import Cauchy
    >>> Cauchy(0., 1.).cdf(torch.tensor([0., 1.]))
    tensor([0.5000, 0.7500])
    """

    @property
    def mean(self) -> Tensor:
        return _full_like_batch(self, self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return _full_like_batch(self, self.loc, math.inf)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        eps = self.loc.new(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - (z**2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return taeda.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return taeda.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()
