"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor
from taeda.nn import functional as F

from . import constraints
from .binomial import broadcast_counts
from .distribution import Distribution, ProbsOrLogits
from .gamma import Gamma
from .utils import lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The number k of successes before r failures: ``C(r + k - 1, k) p^k (1 - p)^r``.

    r is `total_count`, which need not be an integer: a Poisson number of gamma distributed rate.

    >>> from taeda.distributions import NegativeBinomial
    >>> NegativeBinomial(2., torch.tensor(0.5)).mean
    tensor(2.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer
    total_count: Tensor

    def __init__(
        self,
        total_count: Any,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        broadcast_counts(self, total_count, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * taeda.exp(self.logits)

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        return self.mean / taeda.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self) -> Gamma:
        return Gamma(self.total_count, taeda.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with taeda.no_grad():
            return taeda.poisson(self._gamma.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        r = self.total_count
        log_power = r * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        log_binomial = -taeda.lgamma(r + value) + taeda.lgamma(1.0 + value) + taeda.lgamma(r)
        return log_power - log_binomial.masked_fill(r + value == 0.0, 0.0)
