"""Switches for recording: ``no_grad``, ``enable_grad``, ``set_grad_enabled``, ``inference_mode``.

Each is a context manager and a decorator, for generator functions too: there the mode holds while
the generator runs, not while its caller does. Modes belong to the calling thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from taeda import _C, _missing
from taeda._C import (
    _set_grad_enabled,  # type: ignore[attr-defined]
    is_grad_enabled,
    is_inference_mode_enabled,
)
from taeda.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager

_F = TypeVar("_F", bound=Callable[..., Any])

__all__ = [
    "no_grad",
    "enable_grad",
    "set_grad_enabled",
    "inference_mode",
    "set_multithreading_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
]


class _PlainMode(_NoParamDecoratorContextManager):
    enabled: bool

    def __init__(self) -> None:
        self.prev = False

    def __enter__(self) -> None:
        self.prev = is_grad_enabled()
        _set_grad_enabled(self.enabled)

    def __exit__(self, *exc_info: Any) -> None:
        _set_grad_enabled(self.prev)


class no_grad(_PlainMode):
    """Operators are not recorded: results do not require grad.

    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     print((x * 2).requires_grad)
    False
    """

    enabled = False


class enable_grad(_PlainMode):
    """Operators are recorded again, inside a ``no_grad`` block. A context manager, and a
    decorator of functions; it concerns the calling thread alone.

    >>> x = torch.ones(1, requires_grad=True)
    >>> with torch.no_grad():
    ...     with torch.enable_grad():
    ...         y = x * 2
    >>> y.requires_grad
    True
    """

    enabled = True


class set_grad_enabled(_DecoratorContextManager):
    """Switches recording on or off, at once; as a context manager, until the end of the block."""

    def __init__(self, mode: bool) -> None:
        self.prev = is_grad_enabled()
        self.mode = mode
        _set_grad_enabled(mode)

    def __call__(self, function: _F) -> _F:
        _set_grad_enabled(self.prev)
        return super().__call__(function)

    def clone(self) -> set_grad_enabled:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        _set_grad_enabled(self.mode)

    def __exit__(self, *exc_info: Any) -> None:
        _set_grad_enabled(self.prev)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(mode={self.mode})"


class inference_mode(_DecoratorContextManager):
    """Stronger than ``no_grad``: tensors made inside can never take part in recording.

    They have no version counter and may not be changed outside or saved for backward.
    """

    if not TYPE_CHECKING:

        def __new__(cls, mode: Any = True) -> Any:
            context = super().__new__(cls)
            if isinstance(mode, bool):
                return context
            context.mode = True
            return context(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def clone(self) -> inference_mode:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        self._saved = _C._enter_inference_mode(self.mode)

    def __exit__(self, *exc_info: Any) -> None:
        _C._exit_inference_mode(self._saved)


@contextmanager
def differentiating() -> Iterator[None]:
    """A block that records where the mode says so, although vmap outside has switched that off."""
    excluded = _C._exclude_autograd(is_inference_mode_enabled())
    try:
        yield
    finally:
        _C._exclude_autograd(excluded)


@contextmanager
def recording() -> Iterator[None]:
    """A block whose operators are recorded, also inside ``no_grad``, ``inference_mode``, vmap."""
    with inference_mode(False) if is_inference_mode_enabled() else enable_grad():
        with differentiating():
            yield


@contextmanager
def outside_inference() -> Iterator[None]:
    """A block whose tensors may take part in recording; ``inference_mode`` becomes ``no_grad``."""
    if not is_inference_mode_enabled():
        yield
        return
    with inference_mode(False), no_grad():
        yield


class set_multithreading_enabled(_DecoratorContextManager):
    """Accepted for programs that use it; backward passes always run on the thread that asks."""

    def __init__(self, mode: bool) -> None:
        self.prev = _C._is_multithreading_enabled()
        self.mode = mode
        _C._set_multithreading_enabled(mode)

    def clone(self) -> set_multithreading_enabled:
        return type(self)(self.mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: Any) -> None:
        _C._set_multithreading_enabled(self.prev)


__getattr__, __dir__ = _missing.attributes(__name__)
