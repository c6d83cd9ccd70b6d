"""Random tensors of any dtype."""

from __future__ import annotations

import math
import warnings
from typing import Any

import taeda
from taeda import Tensor

__all__ = ["make_tensor"]


def _is_integral(dtype: Any) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex or dtype == taeda.bool)


def _range(dtype: Any, low: float | None, high: float | None) -> tuple[float, float]:
    """The bounds, with the defaults for the dtype, and within what it can hold."""
    bounds: tuple[float, float] = (0, 2)
    if dtype == taeda.bool:
        defaults = (0, 2)
    elif _is_integral(dtype):
        whole = taeda.iinfo(dtype)
        defaults, bounds = (-9 if dtype.is_signed else 0, 10), (whole.min, whole.max)
    else:
        real = dtype.to_real() if dtype.is_complex else dtype
        info = taeda.finfo(real)
        defaults, bounds = (-9, 9), (info.min, info.max)
    low = defaults[0] if low is None else low
    high = defaults[1] if high is None else high
    if any(isinstance(v, float) and math.isnan(v) for v in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and (dtype.is_floating_point or dtype.is_complex):
        warnings.warn(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
            stacklevel=3,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    return max(low, bounds[0]), min(high, bounds[1])


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of random values, uniform in ``[low, high)``.

    Defaults: [-9, 9) for floating and complex types, [-9, 10) for signed and [0, 10) for unsigned
    integers. ``noncontiguous`` leaves gaps in the last dimension.
    """
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, "
            f"but got {noncontiguous=} and {memory_format=}"
        )
    if requires_grad and not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            "`requires_grad=True` is only supported for floating and complex dtypes, "
            f"but got {dtype=}"
        )
    low, high = _range(dtype, low, high)
    if dtype == taeda.bool or _is_integral(dtype):
        first, last = math.ceil(low), math.ceil(high)
        result = taeda.randint(first, max(last, first + 1), shape, device=device, dtype=dtype)
    elif dtype.is_complex:
        result = taeda.empty(shape, device=device, dtype=dtype)
        taeda.view_as_real(result).uniform_(low, high)
    elif dtype._is_storage_type:
        result = taeda.empty(shape, device=device).uniform_(low, high).to(dtype)
    else:
        result = taeda.empty(shape, device=device, dtype=dtype).uniform_(low, high)
    if noncontiguous and result.numel() > 1:
        result = result.repeat_interleave(2, dim=-1)[..., ::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        integral = dtype == taeda.bool or _is_integral(dtype)
        real = dtype.to_real() if dtype.is_complex else dtype
        result[result == 0] = 1 if integral else taeda.finfo(real).tiny
    return result.requires_grad_() if requires_grad else result
