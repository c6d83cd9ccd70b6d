"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor
from taeda.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from .distribution import ProbsOrLogits, check_one_of
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Density ``C p^x (1 - p)^(1 - x)`` on [0, 1]. Loaiza-Ganem & Cunningham 2019.

    Within `lims` around 1/2, where the formulas divide zeros, Taylor expansions stand in.

    >>> from taeda.distributions import ContinuousBernoulli
    >>> ContinuousBernoulli(torch.tensor(0.5)).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _mean_carrier_measure = 0
    has_rsample = True
    _kept = ("_lims",)

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        check_one_of(probs, logits)
        if probs is not None:
            (probs,) = broadcast_all(probs)
            if validate_args is not None and not constraints.unit_interval.check(probs).all():
                raise ValueError("The parameter probs has invalid values")
            probs = clamp_probs(probs)
        self._set_param(probs, logits)
        self._lims = lims
        super().__init__(self._param.size(), validate_args=validate_args)

    def _outside_unstable_region(self) -> Tensor:
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Tensor:
        return taeda.where(self._outside_unstable_region(), self.probs, self._lims[0])

    def _stable(self, exact: Tensor, taylor: Tensor) -> Tensor:
        return taeda.where(self._outside_unstable_region(), exact, taylor)

    def _cont_bern_log_norm(self) -> Tensor:
        """log C = log |(log(1 - p) - log(p)) / (1 - 2 p)|"""
        cut = self._cut_probs()
        below = taeda.where(cut <= 0.5, cut, 0.0)
        above = taeda.where(cut >= 0.5, cut, 1.0)
        log_gap = taeda.where(cut <= 0.5, taeda.log1p(-2.0 * below), taeda.log(2.0 * above - 1.0))
        exact = taeda.log(taeda.abs(taeda.log1p(-cut) - taeda.log(cut))) - log_gap
        x = taeda.pow(self.probs - 0.5, 2)
        return self._stable(exact, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Tensor:
        cut = self._cut_probs()
        exact = cut / (2.0 * cut - 1.0) + 1.0 / (taeda.log1p(-cut) - taeda.log(cut))
        x = self.probs - 0.5
        return self._stable(exact, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * taeda.pow(x, 2)) * x)

    @property
    def stddev(self) -> Tensor:
        return taeda.sqrt(self.variance)

    @property
    def variance(self) -> Tensor:
        cut = self._cut_probs()
        log_odds = taeda.log1p(-cut) - taeda.log(cut)
        exact = cut * (cut - 1.0) / taeda.pow(1.0 - 2.0 * cut, 2) + 1.0 / taeda.pow(log_odds, 2)
        x = taeda.pow(self.probs - 0.5, 2)
        return self._stable(exact, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    @lazy_property
    def probs(self) -> Tensor:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with taeda.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(taeda.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        log_power = -binary_cross_entropy_with_logits(logits, value, reduction="none")
        return log_power + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._checked(value)
        cut = self._cut_probs()
        power = taeda.pow(cut, value) * taeda.pow(1.0 - cut, 1.0 - value)
        inner = self._stable((power + cut - 1.0) / (2.0 * cut - 1.0), value)
        zeros, ones = taeda.zeros_like(value), taeda.ones_like(value)
        return taeda.where(value <= 0.0, zeros, taeda.where(value >= 1.0, ones, inner))

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._cut_probs()
        log_rest = taeda.log1p(-cut)
        exact = taeda.log1p(-cut + value * (2.0 * cut - 1.0)) - log_rest
        return self._stable(exact / (taeda.log(cut) - log_rest), value)

    def entropy(self) -> Tensor:
        log_probs0, log_probs1 = taeda.log1p(-self.probs), taeda.log(self.probs)
        log_norm = self._cont_bern_log_norm()
        return self.mean * (log_probs0 - log_probs1) - log_norm - log_probs0

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        outside = (x <= low) | (x > high)
        cut = taeda.where(outside, x, low)
        exact = taeda.log(taeda.abs(taeda.expm1(cut))) - taeda.log(taeda.abs(cut))
        taylor = 0.5 * x + taeda.pow(x, 2) / 24.0 - taeda.pow(x, 4) / 2880.0
        return taeda.where(outside, exact, taylor)
