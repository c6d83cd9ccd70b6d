"""Layers for quantization: fused ones, and those that train with fake quantization."""

from __future__ import annotations

import importlib
from typing import Any

from taeda import _missing

_SUBMODULES = ("intrinsic", "qat", "quantized")


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    return _missing.attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SUBMODULES, *_missing.names(__name__)})
