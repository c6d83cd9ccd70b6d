"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from .distribution import LocScale
from .exp_family import ExponentialFamily
from .utils import _Number, _standard_normal

__all__ = ["Normal"]


class Normal(LocScale, ExponentialFamily):
    """Density ``exp(-((x - loc) / scale)^2 / 2) / (scale sqrt(2 pi))``.

    >>> from taeda.distributions import Normal
    >>> Normal(0., 1.).log_prob(torch.tensor([0., 1.]))
    tensor([-0.9189, -1.4189])
    """

    _mean_carrier_measure = 0

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.pow(2)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = _standard_normal(shape, dtype=self.loc.dtype, device=self.loc.device)
        return self.loc + eps * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        scale: Any = self.scale  # a number in subclasses that set it so
        log_scale = math.log(scale) if isinstance(scale, _Number) else scale.log()
        square = -((value - self.loc) ** 2) / (2 * scale**2)
        return square - log_scale - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        z = (value - self.loc) * self.scale.reciprocal() / math.sqrt(2)
        return 0.5 * (1 + taeda.erf(z))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * taeda.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Tensor:
        return 0.5 + 0.5 * math.log(2 * math.pi) + taeda.log(self.scale)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return -0.25 * x.pow(2) / y + 0.5 * taeda.log(-math.pi / y)
