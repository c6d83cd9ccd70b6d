"""Questions and marks around torch.compile, which runs everything eagerly here."""

from __future__ import annotations

from typing import Any


def is_compiling() -> bool:
    return False


def is_dynamo_compiling() -> bool:
    return False


def is_exporting() -> bool:
    return False


def disable(fn: Any = None, recursive: bool = True, **_: Any) -> Any:
    """Marks a function that must not be compiled."""
    return fn if callable(fn) else lambda function: function


allow_in_graph = assume_constant_result = disable


def reset() -> None:
    """There is nothing to forget."""


def cudagraph_mark_step_begin() -> None:
    """There are no CUDA graphs."""
