"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from .distribution import Distribution, LocScale

__all__ = ["Laplace"]


class Laplace(LocScale, Distribution):
    """Density ``exp(-|x - loc| / scale) / (2 scale)``.

    >>> from taeda.distributions import Laplace
    >>> Laplace(0., 1.).log_prob(torch.tensor([0., 1.]))
    tensor([-0.6931, -1.6931])
    """

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.pow(2)

    @property
    def stddev(self) -> Tensor:
        return (2**0.5) * self.scale

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        eps = taeda.finfo(self.loc.dtype).eps
        u = self.loc.new(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * taeda.log1p(-u.abs())

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return -taeda.log(2 * self.scale) - taeda.abs(value - self.loc) / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        from_loc = value - self.loc
        return 0.5 - 0.5 * from_loc.sign() * taeda.expm1(-from_loc.abs() / self.scale)

    def icdf(self, value: Tensor) -> Tensor:
        from_half = value - 0.5
        return self.loc - self.scale * from_half.sign() * taeda.log1p(-2 * from_half.abs())

    def entropy(self) -> Tensor:
        return 1 + taeda.log(2 * self.scale)
