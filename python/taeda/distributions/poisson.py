"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Broadcast
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Poisson"]


class Poisson(Broadcast, ExponentialFamily):
    """The number of events where `rate` are expected: ``rate^k exp(-rate) / k!``.

    >>> from taeda.distributions import Poisson
    >>> Poisson(2.).log_prob(torch.tensor(1.))
    tensor(-1.3069)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    rate: Tensor

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        self._broadcast(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.poisson(self.rate.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (taeda.log(self.rate),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return taeda.exp(x)
