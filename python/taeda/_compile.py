"""``_disable_dynamo``: leaves functions as they are, since none is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _disable_dynamo(
    fn: Callable | None = None, recursive: bool = True, *, wrapping: bool = True
) -> Any:
    """The function itself, as a decorator with or without arguments."""
    return fn if fn is not None else lambda function: function
