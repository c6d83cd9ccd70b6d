"""Helpers that compiled programs call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def is_compiling() -> bool:
    """Whether the code is being compiled: never."""
    return False


def wrap_inline(fn: Callable) -> Callable:
    """A function that calls `fn`."""

    @functools.wraps(fn)
    def inner(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return inner
