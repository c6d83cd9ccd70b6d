"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Broadcast
from .exp_family import ExponentialFamily

__all__ = ["Gamma"]


def _standard_gamma(concentration: Tensor) -> Tensor:
    return taeda._standard_gamma(concentration)


class Gamma(Broadcast, ExponentialFamily):
    """Density ``rate^a x^(a - 1) exp(-rate x) / Gamma(a)``, a the concentration, for x >= 0.

    Draws have implicit gradients with respect to the concentration (Figurnov et al. 2018).

    >>> from taeda.distributions import Gamma
    >>> Gamma(2., 1.).log_prob(torch.tensor(1.))
    tensor(-1.)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    concentration: Tensor
    rate: Tensor

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self._broadcast(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=taeda.finfo(value.dtype).tiny)  # no density at 0
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = taeda.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._checked(value)
        return (
            taeda.xlogy(self.concentration, self.rate)
            + taeda.xlogy(self.concentration - 1, value)
            - self.rate * value
            - taeda.lgamma(self.concentration)
        )

    def entropy(self) -> Tensor:
        return (
            self.concentration
            - taeda.log(self.rate)
            + taeda.lgamma(self.concentration)
            + (1.0 - self.concentration) * taeda.digamma(self.concentration)
        )

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return taeda.lgamma(x + 1) + (x + 1) * taeda.log(-y.reciprocal())

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        return taeda.special.gammainc(self.concentration, self.rate * value)
