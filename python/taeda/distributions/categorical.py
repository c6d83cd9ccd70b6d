"""The categorical distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .distribution import Distribution, ProbsOrLogits, check_one_of, integers_of_support
from .utils import _full_like_batch, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical"]


class Categorical(ProbsOrLogits, Distribution):
    """Class numbers 0 .. K - 1, int64, with probabilities in the last dimension of `probs`.

    `probs` are divided by their sum, from `logits` their logsumexp is subtracted.

    >>> from taeda.distributions import Categorical
    >>> Categorical(torch.tensor([1., 3.])).log_prob(torch.tensor(1)).exp()
    tensor(0.7500)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _kept = ("_num_events",)

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        check_one_of(probs, logits)
        if probs is not None:
            if probs.dim() < 1:
                raise ValueError("`probs` parameter must be at least one-dimensional.")
            self.probs = self._param = probs / probs.sum(-1, keepdim=True)
        else:
            assert logits is not None
            if logits.dim() < 1:
                raise ValueError("`logits` parameter must be at least one-dimensional.")
            self.logits = self._param = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> constraints.Constraint:
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def mean(self) -> Tensor:
        return _full_like_batch(self, self.probs, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        return _full_like_batch(self, self.probs, math.nan)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        rows = self.probs.reshape(-1, self._num_events)
        samples = taeda.multinomial(rows, math.prod(sample_shape), True).T
        return samples.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        value, log_pmf = taeda.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = taeda.clamp(self.logits, min=taeda.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return integers_of_support(self, self._num_events, taeda.long, expand)
