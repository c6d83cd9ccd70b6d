"""Marks functions whose use warns."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable)


def deprecated(message: str, category: type[Warning] = FutureWarning) -> Callable[[F], F]:
    """A decorator: each call warns, at the line of the caller."""

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def warn(*args, **kwargs):  # type: ignore[no-untyped-def]
            warnings.warn(message, category, stacklevel=2)
            return function(*args, **kwargs)

        return warn  # type: ignore[return-value]

    return decorate
