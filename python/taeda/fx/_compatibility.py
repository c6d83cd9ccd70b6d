"""Marks of what stays as it is: they change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_BACK_COMPAT_OBJECTS: dict[object, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[object, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[T], T]:
    """Decorator: notes whether a function or class keeps its interface."""

    def mark(found: T) -> T:
        _MARKED_WITH_COMPATIBILITY.setdefault(found)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(found)
        return found

    return mark
