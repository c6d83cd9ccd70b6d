"""Rules that operators written in Python share: dtypes, dimensions, shapes and strides."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from enum import Enum
from functools import reduce
from typing import Any

import taeda
from taeda import Tensor

from ._dtypes import (  # noqa: F401
    ELEMENTWISE_TYPE_PROMOTION_KIND,
    REDUCTION_OUTPUT_TYPE_KIND,
    Number,
    NumberType,
    NumberTypeType,
    RealNumberType,
    can_safe_cast_to,
    corresponding_complex_dtype,
    corresponding_real_dtype,
    dtype_or_default,
    dtype_to_type,
    dtype_to_type_ctor,
    elementwise_dtypes,
    get_acc_type,
    get_computation_dtype,
    get_dtype,
    get_higher_dtype,
    get_higher_type,
    is_boolean_dtype,
    is_complex_dtype,
    is_float_dtype,
    is_grad_dtype,
    is_integer_dtype,
    is_low_precision_dtype,
    is_weakly_lesser_type,
    number_type,
    reduction_dtypes,
    type_to_dtype,
)
from ._shapes import (  # noqa: F401
    apply_perm,
    canonicalize_dim,
    canonicalize_dims,
    check_contiguous_sizes_strides,
    check_same_device,
    check_same_dtype,
    check_same_shape,
    compute_reduction_output_shape,
    compute_required_storage_length,
    extract_dims_from_varargs,
    extract_shape,
    extract_shape_from_varargs,
    infer_size,
    infer_size_shapes,
    invert_perm,
    is_channels_last_contiguous,
    is_contiguous,
    is_contiguous_for_memory_format,
    is_contiguous_for_memory_format_or_false,
    is_contiguous_or_false,
    is_cpu_scalar_tensor,
    is_expandable_to,
    is_same_shape,
    is_valid_permutation,
    make_channels_last_1d_strides_for,
    make_channels_last_2d_strides_for,
    make_channels_last_3d_strides_for,
    make_channels_last_strides_for,
    make_contiguous_strides_for,
    reduction_dims,
    same_shape,
    suggest_memory_format,
    validate_dim_length,
    validate_dimension_indices,
    validate_exclusive_idx,
    validate_idx,
    validate_memory_format,
    validate_no_repeating_dims,
    validate_shape,
    validate_strides,
)

ShapeType = taeda.Size | list[int] | tuple[int, ...]
StrideType = list[int] | tuple[int, ...]
DimsType = int | list[int] | tuple[int, ...]
DimsSequenceType = list[int] | tuple[int, ...]
DeviceLikeType = str | taeda.device | int
TensorLike = Tensor
TensorLikeType = Tensor
TensorSequenceType = list[Tensor] | tuple[Tensor, ...]
TensorOrNumberLikeType = Tensor | NumberType
IntLike, FloatLike, BoolLike = int, float, bool
Dim = int


class RETURN_TYPE(Enum):
    """What an operator gives back: a tensor of its own, a view, its argument, or nothing."""

    NEW = (0,)
    VIEW = (1,)
    INPLACE = (2,)
    NONE = (3,)


def check(b: bool, s: Callable[[], str], exc_type: type[Exception] = RuntimeError) -> None:
    """Raises `exc_type` with the text that `s` gives unless `b`."""
    if not b:
        raise exc_type(s())


def check_fp_or_complex(
    dtype: taeda.dtype, fn_name: str, allow_low_precision_dtypes: bool = True
) -> None:
    """RuntimeError for dtypes that are not real or complex numbers."""
    check(
        is_float_dtype(dtype) or is_complex_dtype(dtype),
        lambda: f"{fn_name}: Expected a floating point or complex tensor as input. Got {dtype}",
    )
    check(
        allow_low_precision_dtypes or not is_low_precision_dtype(dtype),
        lambda: f"{fn_name}: Half precision dtypes not supported. Got {dtype}",
    )


def check_is_matrix(A: Tensor, f_name: str, arg_name: str = "A") -> None:
    """RuntimeError for tensors with fewer than two dimensions."""
    check(
        A.dim() >= 2,
        lambda: f"{f_name}: The input tensor {arg_name} must have at least 2 dimensions.",
    )


def device_or_default(device: Any) -> taeda.device:
    """The device, that of new tensors for None."""
    return taeda.empty(0).device if device is None else taeda.device(device)


def canonicalize_device(device: Any) -> taeda.device:
    """A torch.device for what names one."""
    return device if isinstance(device, taeda.device) else taeda.device(device)


def layout_or_default(layout: Any) -> Any:
    """The layout, strided for None."""
    return taeda.strided if layout is None else layout


def set_correction(unbiased: bool | None = None, correction: Any = None) -> float:
    """What var and std subtract from the number of values: `correction`, or by `unbiased`."""
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        return 0.0 if unbiased is False else 1.0
    check(correction >= 0, lambda: "correction argument should be non-negative", ValueError)
    return float(correction)


def mask_tensor(mask: Tensor, t: Tensor) -> Tensor:
    """`t` where the mask is True, else 0; bool tensors stay bool."""
    return mask.logical_and(t) if t.dtype is taeda.bool else taeda.where(mask, t, 0)


def prod(xs: Sequence[Any]) -> Any:
    """The product of numbers; 1 of none."""
    return reduce(operator.mul, xs, 1)


def clone_preserve_strides(x: Tensor) -> Tensor:
    """A copy with the same strides, of the memory that the tensor spans."""
    needed = compute_required_storage_length(x.size(), x.stride(), x.storage_offset())
    buffer = taeda.as_strided(x, (needed,), (1,), 0).clone()
    return taeda.as_strided(buffer, x.size(), x.stride(), x.storage_offset())
