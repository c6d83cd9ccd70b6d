"""What a fake implementation may ask: torch.library.get_ctx()."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["FakeImplCtx", "UnknownSize", "current", "in_context"]


class UnknownSize(RuntimeError):
    """A size that depends on values was asked for where there are none."""


class FakeImplCtx:
    """What get_ctx() returns inside of a fake implementation."""

    def __init__(self, name: str) -> None:
        self._name = name

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> Any:
        """A size that depends on values: sizes are numbers here, so there is none, and
        FakeTensorMode raises DynamicOutputShapeException for the operator."""
        raise UnknownSize(
            f"{self._name}: You're trying to run this operator with meta Tensors (as opposed to "
            "FakeTensors), but this operator may return an output Tensor with data-dependent "
            "shape, of which tensors without data know nothing. Where the shape does not depend on "
            "data, the fake implementation should not call torch.library.get_ctx()"
        )

    def create_unbacked_symint(self, *, min: int = 2, max: int | None = None) -> Any:
        """The old name of new_dynamic_size()."""
        return self.new_dynamic_size(min=min, max=max)


class _Running(threading.local):
    context: FakeImplCtx | None = None


_running = _Running()


def current() -> FakeImplCtx | None:
    """The context of the fake implementation that runs on this thread; None outside of one."""
    return _running.context


def in_context(name: str, function: Callable) -> Callable:
    """A fake implementation that finds a context while it runs."""

    @functools.wraps(function)
    def fake(*args: Any, **kwargs: Any) -> Any:
        outside = _running.context
        _running.context = FakeImplCtx(name)
        try:
            return function(*args, **kwargs)
        finally:
            _running.context = outside

    return fake
