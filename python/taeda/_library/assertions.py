"""PyTorch's operators that check values and read metadata, which traced programs contain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor

_INT_MAX = 2**63 - 1


def _define(schema: str) -> Callable:
    return lambda function: _C._define_composite(f"aten::{schema}", function)


def _assert_true(value: Any, message: str) -> None:
    if not value:
        raise RuntimeError(message)


def _assert_later(value: Tensor, message: str) -> None:
    """The same of a tensor; a device looks by itself, and raises where the host next waits."""
    if value.is_cuda and value.numel() == 1 and _C._check_indices(value.eq(0).long(), 1, message):
        return
    _assert_true(value, message)


_define("_assert_scalar(Scalar self, str assert_msg) -> ()")(_assert_true)
_define("_assert_async.msg(Tensor self, str assert_msg) -> ()")(_assert_later)


@_define("_assert_async(Tensor self) -> ()")
def _assert_async(value: Tensor) -> None:
    _assert_later(value, "Expected Tensor with single nonzero value, but got zero")


@_define(
    "_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, "
    "ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()"
)
def _assert_tensor_metadata(
    a: Tensor, size: Any = None, stride: Any = None, dtype: Any = None, *,
    device: Any = None, layout: Any = None,
) -> None:  # fmt: skip
    """RuntimeError where a tensor is not as described; None describes nothing."""
    found = {
        "sizes": (size, list(a.shape)),
        "strides": (stride, None if stride is None else list(a.stride())),
        "dtype": (dtype, a.dtype),
        "device": (device, a.device),
        "layout": (layout, a.layout),
    }
    for what, (expected, got) in found.items():
        if expected is not None and expected != got:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {got}")


@_define("sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()")
def _sym_constrain_range(size: Any, *, min: int | None = None, max: int | None = None) -> None:
    low, high = -_INT_MAX - 1 if min is None else min, _INT_MAX if max is None else max
    if low > high:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={low} max={high}")
    if not low <= int(size) <= high:
        raise RuntimeError(f"Invalid value range for {int(size)} between [{low}, {high}].")


@_define("sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()")
def _sym_constrain_range_for_size(
    size: Any, *, min: int | None = None, max: int | None = None
) -> None:
    if max is not None and max <= 2:
        raise RuntimeError(
            f"Max value to constrain_range_for_size must be greater than 2. got: {max}"
        )
    _sym_constrain_range(size, min=min or 0, max=max)


@_define("_print(str s) -> ()")
def _print(text: str) -> None:
    print(text)


@_define("_is_all_true(Tensor self) -> Tensor")
def _is_all_true(x: Tensor) -> Tensor:
    return x.all()


@_define("_is_any_true(Tensor self) -> Tensor")
def _is_any_true(x: Tensor) -> Tensor:
    return x.any()


_define("sym_size.int(Tensor self, int dim) -> SymInt")(lambda x, dim: x.size(dim))
_define("sym_size(Tensor self) -> SymInt[]")(lambda x: list(x.shape))
_define("sym_stride.int(Tensor self, int dim) -> SymInt")(lambda x, dim: x.stride(dim))
_define("sym_stride(Tensor self) -> SymInt[]")(lambda x: list(x.stride()))
_define("sym_numel(Tensor self) -> SymInt")(lambda x: x.numel())
_define("sym_storage_offset(Tensor self) -> SymInt")(lambda x: x.storage_offset())


@_define(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, "
    "int? dim=None) -> (Tensor, Tensor, Tensor)"
)
def _unique_consecutive(x: Tensor, *args: Any) -> tuple:
    return taeda._unique_consecutive(x, *args)
