"""Continuous relaxations of the categorical distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from ._relaxed import Relaxed
from .categorical import Categorical
from .one_hot_categorical import OverClasses
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OverClasses):
    """The logarithm of RelaxedOneHotCategorical: log_softmax of (logits + Gumbel) / temperature.

    >>> from taeda.distributions.relaxed_categorical import ExpRelaxedCategorical
    >>> ExpRelaxedCategorical(torch.tensor(1.), torch.tensor([0.5, 0.5])).rsample().exp().sum()
    tensor(1.)
    """

    support = constraints.real_vector
    has_rsample = True
    _kept = ("temperature",)

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.temperature = temperature
        self._set_categorical(Categorical(probs, logits), validate_args)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(taeda.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        k = self._categorical._num_events
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        log_scale = taeda.full_like(self.temperature, float(k)).lgamma() - (
            self.temperature.log().mul(-(k - 1))
        )
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(Relaxed):
    """Points of the simplex that tend to one-hot vectors as `temperature` tends to 0.

    Maddison, Mnih & Teh, The concrete distribution, 2017; Jang, Gu & Poole 2017.

    >>> from taeda.distributions import RelaxedOneHotCategorical
    >>> RelaxedOneHotCategorical(torch.tensor(1.), torch.tensor([0.5, 0.5])).rsample().sum()
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self,
        temperature: Tensor,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
