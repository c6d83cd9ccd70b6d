"""Tensors in page-locked memory."""

from __future__ import annotations

from typing import Any

from ..dataloader import _pin

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """The tensors in lists, tuples and dicts, in page-locked memory."""
    return _pin(data)
