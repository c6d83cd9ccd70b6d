"""The exponential distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Broadcast
from .exp_family import ExponentialFamily

__all__ = ["Exponential"]


class Exponential(Broadcast, ExponentialFamily):
    """Density ``rate exp(-rate x)`` for x >= 0.

    >>> from taeda.distributions import Exponential
    >>> Exponential(2.).log_prob(torch.tensor(1.))
    tensor(-1.3069)
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._broadcast(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return taeda.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.rate.new(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return 1 - taeda.exp(-self.rate * value)

    def icdf(self, value: Tensor) -> Tensor:
        return -taeda.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1.0 - taeda.log(self.rate)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (-self.rate,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return -taeda.log(-x)
