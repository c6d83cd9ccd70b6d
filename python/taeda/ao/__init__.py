"""Quantization as training sees it: observers, fake quantization, layers that use them."""

from __future__ import annotations

from taeda import _missing

__getattr__, __dir__ = _missing.attributes(__name__, ("nn", "quantization"))
