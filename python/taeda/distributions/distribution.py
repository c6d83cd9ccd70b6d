"""The base class of distributions, and what those with broadcast parameters share."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

import taeda
from taeda import Size, Tensor

from . import constraints
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Distribution"]

Self = TypeVar("Self", bound="Distribution")


def _all_valid(valid: Any) -> bool:
    return bool(valid.all())


class Distribution:
    """A batch of probability distributions.

    ``batch_shape`` counts the distributions, ``event_shape`` is the shape of one draw: a sample has
    shape ``sample_shape + batch_shape + event_shape`` and ``log_prob`` one number for each event.
    With ``validate_args`` (the default, but under ``python -O``) parameters and values are checked
    against ``arg_constraints`` and ``support``; ValueError for those outside.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Turns validation on or off for distributions that are not told."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Size = Size(),
        event_shape: Size = Size(),
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape
        self._event_shape = event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `arg_constraints`. Please set "
                "`arg_constraints = {}` or initialize the distribution with `validate_args=False` "
                "to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(
                getattr(type(self), name, None), lazy_property
            ):
                continue  # would be computed from another parameter
            value = getattr(self, name)
            if not _all_valid(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distributions repeated to a larger batch; nothing is copied."""
        raise NotImplementedError

    @property
    def batch_shape(self) -> Size:
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """The constraint of each parameter by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Tensor:
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        """Draws of shape sample_shape + batch_shape + event_shape, without gradient."""
        with taeda.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        """Draws that are differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """n draws. Deprecated: ``sample((n,))``."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            category=FutureWarning,
            stacklevel=2,
        )
        return self.sample(Size((n,)))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability at `value`."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of draws up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of ``cdf``."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values that a discrete distribution takes, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The mean of ``-log_prob``, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """exp of the entropy."""
        return taeda.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = Size()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _checked(self, value: Any) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Tensor) -> None:
        """ValueError where `value` does not fit the shapes or lies outside of the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual, event_shape = value.size(), self._event_shape
        if actual[len(actual) - len(event_shape) :] != event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {actual} vs {event_shape}."
            )
        expected = self._batch_shape + event_shape
        for i, j in zip(reversed(actual), reversed(expected)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    "Value is not broadcastable with batch_shape+event_shape: "
                    f"{actual} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not _all_valid(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) "
                f"to be within the support ({support!r}) of the distribution {self!r}, but found "
                f"invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An empty instance for ``expand``: a subclass with its own __init__ has to make it."""
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom "
                "__init__ method must also define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            if name in self.__dict__:
                value = self.__dict__[name]
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{self.__class__.__name__}({', '.join(shown)})"


class Expandable:
    """``expand`` for distributions that are made of their attributes.

    Parameters (the names of the library's ``arg_constraints``) and the attributes in
    ``_batched``, tensors or distributions whose shape begins with the batch's, are expanded where
    the instance has them; those in ``_kept`` are shared.
    """

    _batched: tuple[str, ...] = ()
    _kept: tuple[str, ...] = ()

    def expand(self: Any, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(library_class(self), _instance)
        batch_shape = Size(batch_shape)
        self._expand_attributes(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_attributes(self: Any, new: Any, batch_shape: Size) -> None:
        own, rank = self.__dict__, len(self._batch_shape)
        names = library_class(self).arg_constraints  # type: ignore[attr-defined]
        if isinstance(names, property):
            names = names.__get__(self)
        for name in (*names, *self._batched):
            if name in own:
                shape = own[name].shape if isinstance(own[name], Tensor) else own[name].batch_shape
                setattr(new, name, own[name].expand(batch_shape + shape[rank:]))
        for name in self._kept:
            setattr(new, name, own[name])


def library_class(distribution: Any) -> type:
    """The nearest class of an instance that this package defines."""
    package = __name__.rpartition(".")[0] + "."
    return next(c for c in type(distribution).__mro__ if str(c.__module__).startswith(package))


class Broadcast(Expandable):
    """Distributions of single numbers, one for each element of parameters that broadcast."""

    def _broadcast(self: Any, validate_args: bool | None, **parameters: Any) -> None:
        values = broadcast_all(*parameters.values())
        for name, value in zip(parameters, values):
            setattr(self, name, value)
        Distribution.__init__(self, values[0].size(), validate_args=validate_args)


class LocScale(Broadcast):
    """Distributions of ``loc + scale * x``, symmetric around loc."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self._broadcast(validate_args, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc


def check_one_of(probs: Any, logits: Any) -> None:
    """ValueError unless one of the two is given."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


class ProbsOrLogits(Expandable):
    """Parameters that are probabilities of events or their log odds; each follows from the other.

    ``_param`` is the one that was given.
    """

    _batched = ("_param",)

    def _set_param(self: Any, probs: Any, logits: Any) -> None:
        check_one_of(probs, logits)
        if probs is not None:
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        self._param = self.probs if probs is not None else self.logits

    def _new(self: Any, *args: Any, **kwargs: Any) -> Tensor:
        return self._param.new(*args, **kwargs)

    @lazy_property
    def logits(self: Any) -> Tensor:
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self: Any) -> Tensor:
        return logits_to_probs(self.logits, is_binary=True)

    @property
    def param_shape(self: Any) -> Size:
        return self._param.size()


def integers_of_support(distribution: Any, count: int, dtype: Any, expand: bool) -> Tensor:
    """0 .. count - 1 along a first dimension before the batch."""
    like, batch_shape = distribution._param, distribution._batch_shape
    values = taeda.arange(count, dtype=dtype, device=like.device)
    values = values.view((-1,) + (1,) * len(batch_shape))
    return values.expand((-1, *batch_shape)) if expand else values
