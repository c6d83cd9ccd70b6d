"""The generalized Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Broadcast, Distribution

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Broadcast, Distribution):
    """The tail beyond `loc`: ``P(X > x) = (1 + c z)^(-1/c)``, z = (x - loc) / scale.

    c is the concentration; 0 stands for the exponential distribution, the limit.

    >>> from taeda.distributions import GeneralizedPareto
    >>> GeneralizedPareto(0., 1., 0.).cdf(torch.tensor(1.))
    tensor(0.6321)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True
    loc: Tensor
    scale: Tensor
    concentration: Tensor

    def __init__(
        self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None
    ) -> None:
        self._broadcast(validate_args, loc=loc, scale=scale, concentration=concentration)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> constraints.Constraint:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, taeda.where(self.concentration < 0, end, math.inf))

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(taeda.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def _z(self, x: Tensor) -> Tensor:
        return (x - self.loc) / self.scale

    def _split(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and the concentration with 1 there."""
        c = self.concentration
        is_zero = taeda.isclose(c, taeda.zeros_like(c))
        return is_zero, taeda.where(is_zero, taeda.ones_like(c), c)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        z = self._z(value)
        is_zero, c = self._split()
        power = 1 / c + taeda.ones_like(z)
        exact = taeda.where(power == 0, power, power * taeda.log1p(c * z))
        return -self.scale.log() - taeda.where(is_zero, z, exact)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """log P(X > value)"""
        self._checked(value)
        z = self._z(value)
        is_zero, c = self._split()
        return taeda.where(is_zero, -z, -taeda.log1p(c * z) / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """log P(X <= value)"""
        return taeda.log1p(-taeda.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return taeda.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        is_zero, c = self._split()
        log_rest = taeda.log1p(-value)
        exact = self.loc + self.scale / c * taeda.expm1(-c * log_rest)
        return taeda.where(is_zero, self.loc - self.scale * log_rest, exact)

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        c = taeda.where(finite, self.concentration, 0.5)
        return taeda.where(finite, self.loc + self.scale / (1 - c), math.nan)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        c = taeda.where(finite, self.concentration, 0.25)
        result = self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c))
        return taeda.where(finite, result, math.nan)

    def entropy(self) -> Tensor:
        result = taeda.log(self.scale) + self.concentration + 1
        return taeda.broadcast_to(result, self._batch_shape)

    @property
    def mode(self) -> Tensor:
        return self.loc
