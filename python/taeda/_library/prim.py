"""Operators that a class with a `__torch_dispatch__` is asked for a tensor's metadata by."""

from __future__ import annotations

from taeda import _C, Tensor

__all__: list[str] = []


def device(a: Tensor) -> _C.device:
    """The tensor's device."""
    return a.device


def layout(a: Tensor) -> _C.layout:
    """The tensor's layout."""
    return a.layout


for _function, _result in ((device, "Device"), (layout, "Layout")):
    _C._define_composite(f"prim::{_function.__name__}(Tensor a) -> {_result}", _function)
