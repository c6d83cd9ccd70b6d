"""The library of operators that quantize in steps: programs add operators of their own to it."""

from __future__ import annotations

from taeda.library import Library

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")
