"""Continuous relaxations of the Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from ._relaxed import Relaxed
from .distribution import Distribution, ProbsOrLogits
from .transforms import SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log odds of RelaxedBernoulli: ``(logits + l) / temperature``, l a logistic number.

    >>> from taeda.distributions.relaxed_bernoulli import LogitRelaxedBernoulli
    >>> LogitRelaxedBernoulli(torch.tensor(1.), logits=torch.tensor(0.)).log_prob(torch.tensor(0.))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_param(probs, logits)
        super().__init__(self._param.size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(taeda.rand(shape, dtype=probs.dtype, device=probs.device))
        log_odds = u.log() - (-u).log1p() + probs.log() - (-probs).log1p()
        return log_odds / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(Relaxed):
    """Numbers of (0, 1) that tend to a Bernoulli's as `temperature` tends to 0, with gradients.

    Maddison, Mnih & Teh, The concrete distribution, 2017; Jang, Gu & Poole 2017.

    >>> from taeda.distributions import RelaxedBernoulli
    >>> RelaxedBernoulli(torch.tensor(1.), torch.tensor(0.5)).log_prob(torch.tensor(0.2))
    tensor(0.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self,
        temperature: Tensor,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
