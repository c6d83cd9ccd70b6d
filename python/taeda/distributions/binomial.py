"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Distribution, ProbsOrLogits, integers_of_support
from .utils import broadcast_all

__all__ = ["Binomial"]


def _clamp_by_zero(x: Tensor) -> Tensor:
    """max(x, 0), with gradient 1/2 at 0."""
    return (x.clamp(min=0) + x - x.clamp(max=0)) / 2


def broadcast_counts(self: Any, total_count: Any, probs: Any, logits: Any) -> None:
    """Sets total_count, and probs or logits, to tensors of one shape and dtype."""
    given = probs if probs is not None else logits
    if given is not None:
        total_count, given = broadcast_all(total_count, given)
        self.total_count = total_count.type_as(given)
    self._set_param(*((given, logits) if probs is not None else (probs, given)))


class Binomial(ProbsOrLogits, Distribution):
    """The number of successes among n trials of probability p: ``C(n, k) p^k (1 - p)^(n - k)``.

    n is `total_count`.

    >>> from taeda.distributions import Binomial
    >>> Binomial(2, torch.tensor(0.5)).log_prob(torch.tensor([0., 1., 2.])).exp()
    tensor([0.2500, 0.5000, 0.2500])
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True
    total_count: Tensor

    def __init__(
        self,
        total_count: Any = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        broadcast_counts(self, total_count, probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        n, logits = self.total_count, self.logits
        # n log(1 + exp(logits)) - log n!, without overflow
        normalizer = (
            n * _clamp_by_zero(logits)
            + n * taeda.log1p(taeda.exp(-taeda.abs(logits)))
            - taeda.lgamma(n + 1)
        )
        factorials = taeda.lgamma(value + 1), taeda.lgamma(n - value + 1)
        return value * logits - factorials[0] - factorials[1] - normalizer

    def entropy(self) -> Tensor:
        self._common_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(taeda.exp(log_prob) * log_prob).sum(0)

    def _common_count(self, name: str) -> int:
        total_count = int(self.total_count.max())
        if not self.total_count.min() == total_count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{name}`.")
        return total_count

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._common_count("enumerate_support")
        return integers_of_support(self, 1 + count, self._param.dtype, expand)
