"""Tensors that have a device and no values: `FakeTensorMode` and what belongs to it."""

from __future__ import annotations

from taeda import _missing
from taeda._subclasses.fake_tensor import (
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

__all__ = [
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
]

__getattr__, __dir__ = _missing.attributes(__name__)
