"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor
from taeda.nn import functional as F

from . import constraints
from .categorical import Categorical
from .distribution import Distribution, Expandable

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OverClasses(Expandable, Distribution):
    """Distributions of vectors with an element for each class of a Categorical."""

    arg_constraints: Any = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _batched = ("_categorical",)
    _categorical: Categorical

    def _set_categorical(self, categorical: Categorical, validate_args: bool | None) -> None:
        self._categorical = categorical
        event_shape = categorical.param_shape[-1:]
        Distribution.__init__(self, categorical.batch_shape, event_shape, validate_args)

    def _new(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._categorical._new(*args, **kwargs)

    @property
    def _param(self) -> Tensor:
        return self._categorical._param

    @property
    def probs(self) -> Tensor:
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        return self._categorical.param_shape


class OneHotCategorical(OverClasses):
    """Vectors with a 1 at the class that a Categorical draws, else 0.

    >>> from taeda.distributions import OneHotCategorical
    >>> OneHotCategorical(torch.tensor([1., 3.])).mode
    tensor([0., 1.])
    """

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._set_categorical(Categorical(probs, logits), validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        return F.one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        indices = self._categorical.sample(Size(sample_shape))
        return F.one_hot(indices, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = taeda.eye(n, dtype=self._param.dtype, device=self._param.device)
        values = values.view((n,) + (1,) * len(self.batch_shape) + (n,))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose draws pass their gradient on to `probs` (Bengio et al. 2013).

    >>> from taeda.distributions import OneHotCategoricalStraightThrough
    >>> OneHotCategoricalStraightThrough(torch.tensor([0., 1.])).rsample()
    tensor([0., 1.])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
