"""Tensors in page-locked memory."""

from __future__ import annotations

import collections.abc
from typing import Any

from .collate import _is_namedtuple, _like_mapping, _like_sequence

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """The tensors in lists, tuples and dicts, in page-locked memory.

    Objects with a method ``pin_memory`` are asked for it; containers keep their types.
    """
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, (str, bytes)):
        return data
    if isinstance(data, collections.abc.Mapping):
        return _like_mapping(data, {key: pin_memory(value) for key, value in data.items()})
    if _is_namedtuple(data):
        return type(data)(*(pin_memory(item) for item in data))
    if isinstance(data, tuple):
        return type(data)(pin_memory(item) for item in data)
    if isinstance(data, collections.abc.Sequence):
        return _like_sequence(data, [pin_memory(item) for item in data])
    return data
