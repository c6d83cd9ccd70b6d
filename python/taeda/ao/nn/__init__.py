"""Layers for quantization: fused ones, and those that train with fake quantization."""

from __future__ import annotations

from taeda import _missing

__getattr__, __dir__ = _missing.attributes(__name__, ("intrinsic", "qat", "quantized"))
