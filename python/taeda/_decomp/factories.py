"""Tensors of constants, ranges and random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor

from .registry import new, of


@of("zeros")
def zeros(size: Sequence[int], **options: Any) -> Tensor:
    """A tensor of zeros."""
    dtype = options.pop("dtype", None) or taeda.get_default_dtype()
    return taeda.full(size, False if dtype == taeda.bool else 0, dtype=dtype, **_known(options))


@of("ones")
def ones(size: Sequence[int], **options: Any) -> Tensor:
    """A tensor of ones."""
    dtype = options.pop("dtype", None) or taeda.get_default_dtype()
    return taeda.full(size, True if dtype == taeda.bool else 1, dtype=dtype, **_known(options))


def _known(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@of("zeros_like")
def zeros_like(x: Tensor, **options: Any) -> Tensor:
    """Zeros of another tensor's sizes."""
    return taeda.full_like(x, 0, **_known(options))


@of("ones_like")
def ones_like(x: Tensor, **options: Any) -> Tensor:
    """Ones of another tensor's sizes."""
    return taeda.full_like(x, 1, **_known(options))


def _new(x: Tensor, size: Sequence[int], value: Any, options: dict[str, Any]) -> Tensor:
    known: dict[str, Any] = {"dtype": x.dtype, "device": x.device, **_known(options)}
    return taeda.full(size, value, **known)


@of("new_zeros")
def new_zeros(x: Tensor, size: Sequence[int], **options: Any) -> Tensor:
    """Zeros of another tensor's dtype, on its device."""
    return _new(x, size, 0, options)


@of("new_ones")
def new_ones(x: Tensor, size: Sequence[int], **options: Any) -> Tensor:
    """Ones of another tensor's dtype, on its device."""
    return _new(x, size, 1, options)


@of("new_full")
def new_full(x: Tensor, size: Sequence[int], fill_value: Any, **options: Any) -> Tensor:
    """Equal elements of another tensor's dtype, on its device."""
    return _new(x, size, fill_value, options)


@of("new_empty")
def new_empty(x: Tensor, size: Sequence[int], **options: Any) -> Tensor:
    """Memory for another tensor's dtype, on its device."""
    known: dict[str, Any] = {"dtype": x.dtype, "device": x.device, **_known(options)}
    return taeda.empty(size, **known)


@of("empty_like")
def empty_like(x: Tensor, **options: Any) -> Tensor:
    """Memory for a tensor like another, in the order of its strides."""
    options = _known(options)
    keep = options.pop("memory_format", taeda.preserve_format) == taeda.preserve_format
    known = {"dtype": x.dtype, "device": x.device} | options
    strides = x.stride()
    by_stride = sorted(range(x.dim()), key=lambda d: (-strides[d], -x.shape[d]))
    order = by_stride if keep else list(range(x.dim()))
    return taeda.ops.aten.empty_permuted.default(list(x.shape), order, **known)


@of("arange")
def arange(end: Any, **options: Any) -> Tensor:
    """0, 1, ... below end"""
    return taeda.ops.aten.arange.start_step(0, end, 1, **_known(options))


@of("arange.start")
def arange_start(start: Any, end: Any, **options: Any) -> Tensor:
    """start, start + 1, ... below end"""
    return taeda.ops.aten.arange.start_step(start, end, 1, **_known(options))


@of("eye", "eye.m")
def eye(n: int, m: int | None = None, **options: Any) -> Tensor:
    """1 on the diagonal, else 0"""
    options = _known(options)
    device = {"device": options["device"]} if "device" in options else {}
    columns = taeda.arange(n if m is None else m, **device)
    diagonal = taeda.arange(n, **device).unsqueeze(-1) == columns
    return diagonal.to(options.get("dtype", taeda.get_default_dtype()))


@of("linspace")
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **options: Any) -> Tensor:
    """Steps of equal size, counted from the nearer end."""
    options = _known(options)
    i = taeda.arange(steps, device=options.get("device"))
    dtype = dtype or taeda.get_default_dtype()
    is_inexact = dtype.is_floating_point or dtype.is_complex
    i = i.to(dtype if is_inexact else taeda.get_default_dtype())
    step = (end - start) / (steps - 1) if steps > 1 else 0
    first = start + step * i
    last = end - step * (steps - 1 - i)
    return taeda.where(i < steps / 2, first, last).to(dtype)


@of("bernoulli")
def bernoulli(x: Tensor, *, generator: Any = None) -> Tensor:
    """1 with the probability that an element says, else 0"""
    drawn = taeda.rand(x.shape, dtype=x.dtype, device=x.device, generator=generator)
    return (drawn < x).to(x.dtype)


@of("uniform")
@new("uniform(Tensor self, float from=0.0, float to=1.0, *, Generator? generator=None) -> Tensor")
def uniform(x: Tensor, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Tensor:
    """Numbers between low and high, of another tensor's sizes"""
    drawn = taeda.rand(x.shape, dtype=x.dtype, device=x.device, generator=generator)
    return low + (high - low) * drawn
