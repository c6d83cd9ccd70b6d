"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor
from taeda.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from .distribution import ProbsOrLogits, integers_of_support
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """1 with probability `probs` (``sigmoid(logits)``), else 0.

    >>> from taeda.distributions import Bernoulli
    >>> Bernoulli(0.25).log_prob(torch.tensor([0., 1.])).exp()
    tensor([0.7500, 0.2500])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, math.nan)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with taeda.no_grad():
            return taeda.bernoulli(self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return integers_of_support(self, 2, self._param.dtype, expand)

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return (taeda.logit(self.probs),)

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return taeda.log1p(taeda.exp(x))
