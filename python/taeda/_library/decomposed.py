"""Quantization in steps, as graphs have it: integers beside their scales and zero points. Programs
add operators of their own to the library.

A number x is stored as q = round(x / scale) + zero_point within quant_min .. quant_max, and read
as (q - zero_point) * scale.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.library import Library

quantized_decomposed_lib = Library("quantized_decomposed", "DEF")

_RANGE = "int quant_min, int quant_max, ScalarType dtype"
_READ = f"{_RANGE}, *, ScalarType? out_dtype=None"


def _define(schema: str) -> Any:
    return lambda function: _C._define_composite(f"quantized_decomposed::{schema}", function)


def _quantized(x: Tensor, scale: Any, zero_point: Any, low: int, high: int, dtype: Any) -> Tensor:
    x = x.float() if x.dtype in (taeda.float16, taeda.bfloat16) else x
    return (taeda.round(x * (1.0 / scale)) + zero_point).clamp(low, high).to(dtype)


def _read(q: Tensor, scale: Any, zero_point: Any, out_dtype: Any) -> Tensor:
    return (q.to(out_dtype or taeda.float32) - zero_point) * scale


@_define(f"quantize_per_tensor(Tensor input, float scale, int zero_point, {_RANGE}) -> Tensor")
def _quantize_per_tensor(input: Tensor, *args: Any) -> Tensor:
    return _quantized(input, *args)


@_define(
    f"quantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {_RANGE}) -> Tensor"
)
def _quantize_by_tensors(input: Tensor, scale: Tensor, zero_point: Tensor, *args: Any) -> Tensor:
    return _quantized(input, scale.item(), int(zero_point.item()), *args)


@_define(f"dequantize_per_tensor(Tensor input, float scale, int zero_point, {_READ}) -> Tensor")
def _dequantize_per_tensor(
    input: Tensor, scale: float, zero_point: int, *_: Any, out_dtype: Any = None
) -> Tensor:
    return _read(input, scale, zero_point, out_dtype)


@_define(
    f"dequantize_per_tensor.tensor(Tensor input, Tensor scale, Tensor zero_point, {_READ}) "
    "-> Tensor"
)
def _dequantize_by_tensors(
    input: Tensor, scale: Tensor, zero_point: Tensor, *_: Any, out_dtype: Any = None
) -> Tensor:
    return _read(input, scale.item(), int(zero_point.item()), out_dtype)


def _along(values: Tensor, x: Tensor, axis: int) -> Tensor:
    """One value for each index of a dimension, to broadcast over the others."""
    shape = [1] * x.dim()
    shape[axis] = -1
    return values.reshape(shape)


@_define(
    f"quantize_per_channel(Tensor input, Tensor scales, Tensor zero_points, int axis, {_RANGE}) "
    "-> Tensor"
)
def _quantize_per_channel(
    input: Tensor, scales: Tensor, zero_points: Tensor, axis: int, *args: Any
) -> Tensor:
    scales, zero_points = _along(scales, input, axis), _along(zero_points, input, axis)
    return _quantized(input, scales, zero_points, *args)


@_define(
    f"dequantize_per_channel(Tensor input, Tensor scales, Tensor? zero_points, int axis, {_READ}) "
    "-> Tensor"
)
def _dequantize_per_channel(
    input: Tensor,
    scales: Tensor,
    zero_points: Tensor | None,
    axis: int,
    *_: Any,
    out_dtype: Any = None,
) -> Tensor:
    zeros = 0 if zero_points is None else _along(zero_points, input, axis)
    return _read(input, _along(scales, input, axis), zeros, out_dtype).to(
        out_dtype or taeda.float32
    )


@_define(
    "choose_qparams.tensor(Tensor input, int quant_min, int quant_max, float eps, ScalarType "
    "dtype) -> (Tensor, Tensor)"
)
def _choose_qparams(input: Tensor, low: int, high: int, eps: float, dtype: Any) -> tuple:
    """The scale in float64 and the zero point by which all numbers of a tensor, and 0, fit."""
    least, most = min(input.min().item(), 0.0), max(input.max().item(), 0.0)
    scale = max((most - least) / (high - low), eps)
    zero_point = min(max(low - round(least / scale), low), high)
    return taeda.tensor([scale], dtype=taeda.float64), taeda.tensor([zero_point])


@_define(
    "choose_qparams_symmetric.tensor(Tensor input, int quant_min, int quant_max, float eps, "
    "ScalarType dtype) -> (Tensor, Tensor)"
)
def _choose_symmetric(input: Tensor, low: int, high: int, eps: float, dtype: Any) -> tuple:
    """The same with 0 in the middle of the range."""
    scale = max(2 * input.abs().max().item() / (high - low), eps)
    middle = 0 if low < 0 else (low + high + 1) // 2
    return taeda.tensor([scale], dtype=taeda.float64), taeda.tensor([middle])
