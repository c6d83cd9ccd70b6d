"""__torch_function__: classes and modes that handle operators in their own way."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from taeda import _C, _missing
from taeda._C import (
    _handle_torch_function,
    _has_torch_function,
    _has_torch_function_variadic,
)
from taeda._tensor import DisableTorchFunctionSubclass  # noqa: F401

__all__ = [
    "BaseTorchFunctionMode",
    "TorchFunctionMode",
    "get_default_nowrap_functions",
    "get_ignored_functions",
    "get_overridable_functions",
    "get_testing_overrides",
    "handle_torch_function",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
    "is_tensor_like",
    "is_tensor_method_or_property",
    "resolve_name",
    "wrap_torch_function",
]


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether any of the arguments, or an active mode, overrides operators."""
    return _has_torch_function(tuple(relevant_args))


def has_torch_function_variadic(*args: Any) -> bool:
    """Whether one of the arguments has a `__torch_function__` that calls must go to."""
    return _has_torch_function_variadic(*args)


def has_torch_function_unary(argument: Any) -> bool:
    """The same for one argument."""
    return _has_torch_function_variadic(argument)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls the arguments' __torch_function__ for `public_api`; TypeError when all decline."""
    return _handle_torch_function(public_api, tuple(relevant_args), *args, **kwargs)


def _get_overloaded_args(
    relevant_args: Iterable[Any], get_type_fn: Callable[[Any], type] | None = None
) -> list[Any]:
    """The arguments whose __torch_function__ is asked, one of each class: as they stand, subclasses
    before what they inherit from. None inside of `DisableTorchFunction`."""
    if not _C._is_torch_function_enabled():
        return []
    kind_of = get_type_fn or type
    found: list[Any] = []
    for argument in relevant_args:
        kind = kind_of(argument)
        own = getattr(kind, "__torch_function__", None)
        if own is None or own is _C._disabled_torch_function_impl:
            continue
        if kind in map(kind_of, found):
            continue
        after = (i for i, other in enumerate(found) if issubclass(kind, kind_of(other)))
        found.insert(next(after, len(found)), argument)
    return found


def wrap_torch_function(dispatcher: Callable) -> Callable:
    """Decorator: makes a function overridable; `dispatcher(*args)` names the relevant arguments."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = dispatcher(*args, **kwargs)
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return decorate


def is_tensor_like(inp: Any) -> bool:
    """A Tensor, or an object whose class has a __torch_function__."""
    return isinstance(inp, _C.Tensor) or hasattr(type(inp), "__torch_function__")


def get_default_nowrap_functions() -> set[Callable]:
    """Functions whose results stay plain Tensors in subclasses."""
    tensor: Any = _C.Tensor  # whose attributes are read as descriptors
    return {tensor.grad.__get__, tensor._grad.__get__, tensor._base.__get__}


def get_overridable_functions() -> dict[Any, list[Callable]]:
    """{namespace, or property of Tensor: functions that a __torch_function__ sees}."""
    from taeda import _overridable

    return {owner: list(functions) for owner, functions in _overridable.overridable()[0].items()}


def get_ignored_functions() -> set[Callable]:
    """Functions that no __torch_function__ is asked about: factories, settings, files, types."""
    from taeda import _overridable

    return _overridable.ignored()


def get_testing_overrides() -> dict[Callable, Callable]:
    """{function: one with the same parameters that returns -1}, of all that can be overridden.

    >>> torch.overrides.get_testing_overrides()[torch.add](1, 2)
    -1
    """
    from taeda import _overridable

    return dict(_overridable.stand_ins())


def is_tensor_method_or_property(function: Callable) -> bool:
    """Whether `function` is a method of Tensor that can be overridden, or a property's getter."""
    from taeda import _overridable

    return function in _overridable.tensor_methods() or function.__name__ == "__get__"


def resolve_name(function: Callable) -> str | None:
    """'torch.add', 'torch.Tensor.T.__get__', 'aten.add.Tensor'; None if no part of torch.

    What several modules have goes by the last of torch, torch.functional and nn.functional.
    """
    from taeda import _overridable

    return _overridable.name_of(function)


class TorchFunctionMode:
    """Context manager whose ``__torch_function__`` sees every operator called in the block.

    >>> from torch.overrides import TorchFunctionMode
    >>> class Log(TorchFunctionMode):
    ...     def __torch_function__(self, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return func(*args, **(kwargs or {}))
    """

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        raise NotImplementedError

    def __enter__(self) -> TorchFunctionMode:
        _C._push_on_torch_function_stack(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _C._pop_torch_function_stack()


class BaseTorchFunctionMode(TorchFunctionMode):
    """Changes nothing."""

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None
    ) -> Any:
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def enable_reentrant_dispatch() -> Iterator[None]:
    """Inside a ``__torch_dispatch__``, a block whose operators are recorded for backward again."""
    from taeda.autograd.grad_mode import differentiating

    with differentiating():
        yield


__getattr__, __dir__ = _missing.attributes(__name__)
