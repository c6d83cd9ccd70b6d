"""Context managers that are decorators too, of functions and of generator functions.

Around a generator function the context is entered whenever the generator runs, not while its
caller does.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

_F = TypeVar("_F", bound=Callable[..., Any])


def _wrap_generator(context: Callable, function: Callable) -> Callable:
    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Iterator:
        with context():
            generator = function(*args, **kwargs)

        def resume(call: Callable, *values: Any) -> Any:
            with context():
                return call(*values)

        try:
            value = resume(generator.send, None)
            while True:
                try:
                    sent = yield value
                except GeneratorExit:
                    resume(generator.close)
                    raise
                except BaseException as error:
                    value = resume(generator.throw, error)
                else:
                    value = resume(generator.send, sent)
        except StopIteration as stop:
            return stop.value

    return wrapped


def context_decorator(
    context: AbstractContextManager | Callable[[], AbstractContextManager], function: _F
) -> _F:
    """`function`, each call of which runs inside `context`, or inside what `context()` makes."""
    if callable(context) and hasattr(type(context), "__enter__"):
        raise ValueError(
            f"context_decorator: a context manager or a function that makes one is expected, got "
            f"{type(context).__name__}, which is both"
        )
    if inspect.isclass(function):
        raise TypeError(
            f"cannot decorate the class {function.__name__} with a context manager; "
            f"decorate its methods"
        )
    enter: Callable = context if callable(context) else lambda: context
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(enter, function)  # type: ignore[return-value]

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with enter():
            return function(*args, **kwargs)

    return wrapped  # type: ignore[return-value]


class _DecoratorContextManager:
    """A context manager whose objects decorate functions: each call enters a clone of it."""

    def clone(self) -> _DecoratorContextManager:
        """A context manager of the same kind, for one call of a decorated function."""
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc_info: Any) -> None:
        raise NotImplementedError

    def __call__(self, function: _F) -> _F:
        return context_decorator(self.clone, function)


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One without arguments: the class decorates as its objects do, ``@no_grad``."""

    if TYPE_CHECKING:

        @overload
        def __new__(cls, function: _F) -> _F: ...  # type: ignore[misc]
        @overload
        def __new__(cls, function: None = None) -> Self: ...
        def __new__(cls, function: Any = None) -> Any: ...

    else:

        def __new__(cls, function: Callable | None = None) -> Any:
            context = super().__new__(cls)
            return context if function is None else context(function)
