"""Which integers the quantized dtypes hold, and sets of schemes."""

from __future__ import annotations

from typing import Any

import taeda

_BITS = {"qint8": 8, "int8": 8, "quint8": 8, "uint8": 8, "qint32": 32, "int32": 32, "uint16": 16,
         "int16": 16, "quint4x2": 4}  # fmt: skip
_ALLOWED = (*_BITS, "float8_e5m2", "float8_e4m3fn")

PER_TENSOR = (taeda.per_tensor_affine, taeda.per_tensor_symmetric)
PER_CHANNEL = (
    taeda.per_channel_affine,
    taeda.per_channel_symmetric,
    taeda.per_channel_affine_float_qparams,
)
SYMMETRIC = (taeda.per_tensor_symmetric, taeda.per_channel_symmetric)


def name_of(dtype: Any) -> str:
    """ "qint8" """
    return str(dtype).removeprefix("torch.")


def is_allowed(dtype: Any) -> bool:
    """Whether observers take a dtype."""
    return name_of(dtype) in _ALLOWED


def full_range(dtype: Any) -> tuple[int, int]:
    """The least and the largest integer; 4 bits for dtypes without such."""
    name = name_of(dtype)
    bits = _BITS.get(name, 4)
    if name.startswith(("q", "i")) and not name.startswith("qu"):
        return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return 0, 2**bits - 1


def chosen_range(dtype: Any, low: int | None, high: int | None, reduced: bool) -> tuple[int, int]:
    """The range that an observer aims at: as given, or the dtype's; one bit less if reduced."""
    if low is None or high is None:
        low, high = full_range(dtype)
        is_byte = name_of(dtype).endswith("int8")
        return (low // 2, high // 2) if reduced and is_byte else (low, high)
    if not low <= 0 <= high:
        raise AssertionError("Used-specified quantization range must include 0.")
    if low >= high:
        raise AssertionError(
            "qmin must be strictly less than qmax for user-specified quantization range."
        )
    most = 2**32 if name_of(dtype) in ("qint32", "int32") else 256
    is_signed = name_of(dtype) in ("qint8", "int8", "qint32", "int32")
    if is_signed and high - low + 1 > most:
        raise AssertionError(
            f"quantization range should be positive and not exceed the maximum bit range (={most})."
        )
    return (low // 2, high // 2) if reduced else (low, high)
