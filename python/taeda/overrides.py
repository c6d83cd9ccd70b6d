"""__torch_function__: classes and modes that handle operators in their own way."""

from __future__ import annotations

import functools
import itertools
import sys
from collections.abc import Callable, Iterable
from typing import Any

from taeda import _C
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


has_torch_function_variadic = _has_torch_function_variadic


def has_torch_function_unary(argument: Any) -> bool:
    """The same for one argument."""
    return _has_torch_function_variadic(argument)


def handle_torch_function(
    public_api: Callable, relevant_args: Iterable[Any], *args: Any, **kwargs: Any
) -> Any:
    """Calls the arguments' __torch_function__ for `public_api`; TypeError when all decline."""
    return _handle_torch_function(public_api, tuple(relevant_args), *args, **kwargs)


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


def is_tensor_like(argument: Any) -> bool:
    """A Tensor, or an object whose class has a __torch_function__."""
    return isinstance(argument, _C.Tensor) or hasattr(type(argument), "__torch_function__")


def get_default_nowrap_functions() -> set[Callable]:
    """Functions whose results stay plain Tensors in subclasses."""
    return {_C.Tensor.grad.__get__, _C.Tensor._grad.__get__, _C.Tensor._base.__get__}


def is_tensor_method_or_property(function: Callable) -> bool:
    """Whether `function` belongs to Tensor."""
    name = getattr(function, "__name__", "")
    return name in ("__get__", "__set__") or getattr(_C.Tensor, name, None) is function


def resolve_name(function: Callable) -> str | None:
    """'torch.add', 'torch.Tensor.T.__get__', 'torch.nn.functional.relu'; None if no part of torch.

    Functions go by the module that defines them: einsum is 'torch.functional.einsum'. Those of
    both torch and nn.functional go by the latter.
    """
    name = getattr(function, "__name__", None)
    if name is None:
        return None
    if name in ("__get__", "__set__", "__delete__"):
        described = getattr(getattr(function, "__self__", None), "__name__", None)
        return described and f"torch.Tensor.{described}.{name}"
    if is_tensor_method_or_property(function):
        return f"torch.Tensor.{name}"
    if getattr(sys.modules["taeda.nn.functional"], name, None) is function:
        return f"torch.nn.functional.{name}"
    parts = (getattr(function, "__module__", None) or "").split(".")
    owner = ".".join(itertools.takewhile(lambda part: not part.startswith("_"), parts))
    if (
        parts[0] not in ("taeda", "torch")
        or getattr(sys.modules.get(owner), name, None) is not function
    ):
        return None
    return ".".join(["torch", *owner.split(".")[1:], name])


class TorchFunctionMode:
    """Context manager whose ``__torch_function__`` sees every operator called in the block.

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
