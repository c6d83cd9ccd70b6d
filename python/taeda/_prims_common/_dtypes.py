"""Kinds of dtypes, and the dtypes that elementwise operators and reductions compute in."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

import taeda
from taeda import Tensor

NumberType = bool | int | float | complex
RealNumberType = bool | int | float
NumberTypeType = type[bool] | type[int] | type[float] | type[complex]
Number = (bool, int, float, complex)

_ORDERED = (bool, int, float, complex)
_INTEGERS = (
    taeda.uint8, taeda.uint16, taeda.uint32, taeda.uint64, taeda.int8, taeda.int16, taeda.int32,
    taeda.int64,
)  # fmt: skip
_LOW_PRECISION = (taeda.float16, taeda.bfloat16, taeda.complex32)
_REAL = {
    taeda.complex32: taeda.float16,
    taeda.complex64: taeda.float32,
    taeda.complex128: taeda.float64,
}
_COMPLEX = {real: wide for wide, real in _REAL.items()} | {taeda.bfloat16: taeda.complex64}
_COMPUTATION = {
    taeda.float16: taeda.float32,
    taeda.bfloat16: taeda.float32,
    taeda.complex32: taeda.complex64,
}
_RANKS = (
    (taeda.bool,), (taeda.uint8, taeda.int8), (taeda.int16,), (taeda.int32,), (taeda.int64,),
    (taeda.float16, taeda.bfloat16), (taeda.float32,), (taeda.float64,), (taeda.complex32,),
    (taeda.complex64,), (taeda.complex128,),
)  # fmt: skip


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How an elementwise operator's dtypes follow from its arguments'."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(Enum):
    """How a reduction's dtype follows from its argument's."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


def is_boolean_dtype(dtype: Any) -> bool:
    """Whether it is torch.bool."""
    return dtype is taeda.bool


def is_integer_dtype(dtype: Any) -> bool:
    """Whether it is an integer's; not torch.bool."""
    return dtype in _INTEGERS


def is_float_dtype(dtype: Any) -> bool:
    """Whether it is a real number's."""
    return dtype.is_floating_point


def is_complex_dtype(dtype: Any) -> bool:
    """Whether it is a complex number's."""
    return dtype in _REAL


def is_low_precision_dtype(dtype: Any) -> bool:
    """Whether it is float16, bfloat16 or complex32."""
    return dtype in _LOW_PRECISION


def is_grad_dtype(dtype: Any) -> bool:
    """Whether its tensors can have gradients."""
    return is_float_dtype(dtype) or is_complex_dtype(dtype)


def corresponding_real_dtype(dtype: Any) -> taeda.dtype:
    """The dtype of a complex number's parts."""
    return _REAL[dtype]


def corresponding_complex_dtype(dtype: Any) -> taeda.dtype:
    """The complex dtype whose parts hold a real dtype's numbers."""
    return _COMPLEX[dtype]


def get_computation_dtype(dtype: Any) -> taeda.dtype:
    """What an operator computes in: float32 for half precision, else the dtype itself."""
    return _COMPUTATION.get(dtype, dtype)


def get_acc_type(dtype: Any, device: Any) -> taeda.dtype:
    """What a reduction accumulates in; on the CPU float64 for float32."""
    on_cpu = {
        taeda.bfloat16: taeda.float64,
        taeda.float16: taeda.float64,
        taeda.float32: taeda.float64,
        taeda.complex32: taeda.complex128,
        taeda.complex64: taeda.complex128,
    }
    if taeda.device(device).type == "cpu":
        return on_cpu.get(dtype, dtype)
    return get_computation_dtype(dtype)


def dtype_or_default(dtype: Any) -> taeda.dtype:
    """The dtype, the default one for None."""
    return dtype if dtype is not None else taeda.get_default_dtype()


def dtype_to_type(dtype: Any) -> type:
    """bool, int, float or complex."""
    if not isinstance(dtype, taeda.dtype):
        raise AssertionError(f"Expected torch.dtype, got {type(dtype)}")
    if dtype is taeda.bool:
        return bool
    if is_integer_dtype(dtype):
        return int
    if dtype.is_floating_point:
        return float
    if is_complex_dtype(dtype):
        return complex
    raise ValueError("Invalid dtype!")


def dtype_to_type_ctor(dtype: Any) -> Callable[[Any], Any]:
    """What makes a number of a dtype's kind of another one."""
    return dtype_to_type(dtype)


def type_to_dtype(typ: type) -> taeda.dtype:
    """The dtype of tensors of Python's numbers."""
    if not isinstance(typ, type):
        raise AssertionError(f"Expected type, got {type(typ)}")
    default = taeda.get_default_dtype()
    if typ in (bool, int, float):
        return {bool: taeda.bool, int: taeda.int64, float: default}[typ]
    if typ is complex:
        return corresponding_complex_dtype(default)
    raise ValueError(f"Invalid type {typ}!")


def number_type(x: Any) -> type:
    """The type of a number."""
    return type(x)


def get_dtype(x: Any) -> taeda.dtype:
    """The dtype of a tensor, or of a tensor of this number."""
    return x.dtype if isinstance(x, Tensor) else type_to_dtype(type(x))


def is_weakly_lesser_type(a: type, b: type) -> bool:
    """Whether bool, int, float or complex `a` comes before `b`, or is the same."""
    if a not in _ORDERED or b not in _ORDERED:
        raise RuntimeError(f"Expected builtin numeric types, found {a}, {b}")
    return _ORDERED.index(a) <= _ORDERED.index(b)


def get_higher_type(a: type, b: type) -> type:
    """The later of two in the order bool, int, float, complex."""
    return b if is_weakly_lesser_type(a, b) else a


def can_safe_cast_to(*, cast_to: Any, cast_from: Any) -> bool:
    """Whether the kind of one dtype holds that of the other: real numbers hold integers."""
    return is_weakly_lesser_type(dtype_to_type(cast_from), dtype_to_type(cast_to))


def _dtype_of(x: Any) -> Any:
    return x if x is None or isinstance(x, taeda.dtype) else get_dtype(x)


def get_higher_dtype(a: Any, b: Any) -> taeda.dtype | None:
    """The later of two dtypes, or of those of tensors or numbers, in the order of kinds and sizes;
    the next one where two are alike in both, as float16 and bfloat16 are. None for two Nones."""
    a, b = _dtype_of(a), _dtype_of(b)
    if a is b or b is None:
        return a
    if a is None:
        return b
    for i, row in enumerate(_RANKS):
        if a in row and b in row:
            return _RANKS[i + 1][0]
        if a in row or b in row:
            return b if a in row else a
    raise RuntimeError("Unexpected termination!")


def _highest(kind: type, args: tuple) -> taeda.dtype | None:
    """The promoted dtype of the arguments of a kind: of the tensors with dimensions, else of those
    without, else None."""
    groups: list[taeda.dtype | None] = [None, None]
    for x in args:
        if isinstance(x, Tensor):
            dtype = x.dtype
            if kind is complex and dtype.is_floating_point:
                dtype = corresponding_complex_dtype(dtype)
            if dtype_to_type(dtype) is kind:
                group = 0 if x.dim() else 1
                groups[group] = get_higher_dtype(groups[group], dtype)
    return groups[0] or groups[1]


def _promoted(args: tuple) -> taeda.dtype:
    highest: type = bool
    for x in args:
        if not isinstance(x, (Tensor, *Number)):
            raise TypeError(f"Unexpected type {type(x)} when computing elementwise type promotion!")
        kind = dtype_to_type(x.dtype) if isinstance(x, Tensor) else type(x)
        highest = get_higher_type(highest, kind)
    if highest is bool:
        return taeda.bool
    return _highest(highest, args) or type_to_dtype(highest)


def elementwise_dtypes(
    *_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND
) -> tuple[taeda.dtype, taeda.dtype]:
    """The dtypes that an elementwise operator computes in and gives, for tensors and numbers.

    Tensors with dimensions go before those without, these before numbers, unless what comes later
    is of a higher kind: bool, integer, real, complex.

    >>> from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
    >>> kind = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
    >>> elementwise_dtypes(torch.ones(2, dtype=torch.half), 1.5, type_promotion_kind=kind)
    (torch.float32, torch.float16)
    """
    kinds = ELEMENTWISE_TYPE_PROMOTION_KIND
    result = _promoted(tuple(x for x in _args if x is not None))
    if type_promotion_kind is kinds.NO_OPMATH:
        return result, result
    if type_promotion_kind is kinds.INT_TO_FLOAT and dtype_to_type(result) in (bool, int):
        result = taeda.get_default_dtype()
    if type_promotion_kind is kinds.BOOL_TO_LONG and result is taeda.bool:
        result = taeda.int64
    computation = get_computation_dtype(result)
    if type_promotion_kind is kinds.COMPLEX_TO_FLOAT and is_complex_dtype(result):
        result = corresponding_real_dtype(result)
    if type_promotion_kind is kinds.ALWAYS_BOOL:
        result = taeda.bool
    return computation, result


def reduction_dtypes(
    arg: Tensor, output_dtype_kind: REDUCTION_OUTPUT_TYPE_KIND, dtype: Any = None
) -> tuple[taeda.dtype, taeda.dtype | None]:
    """The dtypes that a reduction computes in and gives; None for the one it computed in."""
    kinds = REDUCTION_OUTPUT_TYPE_KIND
    result = dtype or arg.dtype
    computation = get_computation_dtype(result)
    if output_dtype_kind is kinds.KEEP_PROMOTED_TYPE:
        return computation, None
    if output_dtype_kind is kinds.ALWAYS_BOOL:
        return computation, taeda.bool
    if output_dtype_kind is kinds.COMPLEX_TO_FLOAT and is_complex_dtype(result):
        result = corresponding_real_dtype(result)
    return computation, result
