"""Passes whose workers must end before the interpreter does."""

from __future__ import annotations

import functools
import weakref
from typing import Any

__all__ = ["end_at_exit", "forget"]

_living: weakref.WeakSet[Any] = weakref.WeakSet()


@functools.cache
def _register() -> None:
    import atexit
    import multiprocessing.util  # noqa: F401  # whose own handler must run after this one

    atexit.register(_end_all)


def _end_all() -> None:
    for iterator in list(_living):
        iterator._shutdown_workers()


def end_at_exit(iterator: Any) -> None:
    """Ends its workers before the interpreter goes."""
    _register()
    _living.add(iterator)


def forget(iterator: Any) -> None:
    """Of one whose workers have ended."""
    _living.discard(iterator)
