"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .binomial import Binomial
from .categorical import Categorical
from .one_hot_categorical import OverClasses
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OverClasses):
    """How often each class appears in `total_count` draws of a Categorical.

    ``n! prod_k p_k^x_k / x_k!``. ``log_prob`` takes counts of any sum where it does not validate.

    >>> from taeda.distributions import Multinomial
    >>> Multinomial(2, torch.tensor([0.5, 0.5])).log_prob(torch.tensor([1., 1.])).exp()
    tensor(0.5000)
    """

    _kept = ("total_count",)
    total_count: int

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._set_categorical(Categorical(probs=probs, logits=logits), validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        return constraints.multinomial(self.total_count)

    @property
    def _binomial(self) -> Binomial:
        return Binomial(total_count=self.total_count, probs=self.probs)

    @property
    def mean(self) -> Tensor:
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        sample_shape = Size(sample_shape)
        draws = self._categorical.sample(Size((self.total_count,)) + sample_shape).movedim(0, -1)
        counts = draws.new(self._extended_shape(sample_shape)).zero_()
        counts.scatter_add_(-1, draws, taeda.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = taeda.tensor(self.total_count)
        exact = n * self._categorical.entropy() - taeda.lgamma(n + 1)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        probabilities = taeda.exp(self._binomial.log_prob(counts))
        return exact + (probabilities * taeda.lgamma(counts + 1)).sum([0, -1])

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)  # 0 log(0) is 0
        log_factorials = taeda.lgamma(value + 1).sum(-1)
        return taeda.lgamma(value.sum(-1) + 1) - log_factorials + (logits * value).sum(-1)
