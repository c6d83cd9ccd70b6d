"""What the table's expressions mean in Python: the calls in the generated module `defined`."""

from __future__ import annotations

import math
from builtins import float, int, len  # noqa: UP029
from collections.abc import Callable
from math import inf, nan, pi
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda import bool as bool8

from . import rules

__all__ = ["bool8", "call", "float", "inf", "int", "len", "method", "nan", "pi", "rules"]

complex64, complex128 = taeda.complex64, taeda.complex128
float16, float32, float64 = taeda.float16, taeda.float32, taeda.float64
int32, int64, uint8 = taeda.int32, taeda.int64, taeda.uint8

DTYPE_FUNCTIONS: dict[str, Callable] = {
    "is_floating": lambda dtype: dtype.is_floating_point,
    "is_integral": rules.is_integral,
    "is_complex": lambda dtype: dtype.is_complex,
    "is_inexact": lambda dtype: dtype.is_floating_point or dtype.is_complex,
    "is_reduced_floating": lambda dtype: dtype in (float16, taeda.bfloat16),
    "to_real": lambda dtype: dtype.to_real(),
    "promote_types": taeda.promote_types,
    "broadcast": lambda *sizes: list(taeda.broadcast_shapes(*sizes)),
}
NUMBER_FUNCTIONS: dict[str, Callable] = {
    "abs": abs,
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "floor": math.floor,
    "ceil": math.ceil,
}
TENSOR_METADATA: dict[str, Callable] = {
    "sizes": lambda x: list(x.shape),
    "strides": lambda x: list(x.stride()),
    "size": Tensor.size,
    "stride": Tensor.stride,
    "dim": Tensor.dim,
    "numel": Tensor.numel,
    "dtype": lambda x: x.dtype,
    "device": lambda x: x.device,
    "is_floating_point": Tensor.is_floating_point,
    "is_complex": Tensor.is_complex,
    "storage_offset": Tensor.storage_offset,
    "item": Tensor.item,
    "is_contiguous": Tensor.is_contiguous,
}
VALUE_METHODS: dict[str, Callable] = {
    "value": lambda v: v,
    "to_double": float,
    "to_int": int,
    "is_integral": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "is_float": lambda v: isinstance(v, float),
    "is_complex": lambda v: isinstance(v, complex),
    "is_bool": lambda v: isinstance(v, bool),
}


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """A function of numbers or dtypes, or an operator: the first overload that the arguments fit.

    Args:
        name: "mul" of aten, "taeda::pad_by_index", or several full names with "|" between them.
    """
    plain = name.rpartition("::")[2]
    if plain == "result_type":
        return taeda.result_type(*args)
    if not any(isinstance(a, Tensor) for a in args):
        known = NUMBER_FUNCTIONS.get(plain) or DTYPE_FUNCTIONS.get(plain)
        if known is not None:
            return known(*args)
    names = [full if "::" in full else f"aten::{full}" for full in name.split("|")]
    fitting = [op for full in names for op in _C._operators(full)]
    fitting = [op for op in fitting if _fits(op, args, kwargs)]
    if not fitting:
        raise TypeError(f"no overload of {name} takes {args}, {kwargs}")
    exact = (op for op in fitting if not _makes_tensors(op, args))
    return next(exact, fitting[0])(*args, **kwargs)


def _fits(op: Any, args: tuple, kwargs: dict) -> bool:
    try:
        _C._check_arguments(op, args, kwargs)
    except RuntimeError:
        return False
    return True


def _makes_tensors(op: Any, args: tuple) -> bool:
    """Whether a number is given where an overload takes a tensor."""
    pairs = zip(args, op._schema.arguments)
    return any(str(a.type) == "Tensor" and not isinstance(value, Tensor) for value, a in pairs)


def method(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """``target.NAME(...)``: metadata of a tensor, a conversion of a number, or an operator."""
    plain = name.rpartition("::")[2]
    if not isinstance(target, Tensor):
        return VALUE_METHODS[plain](target)
    if plain in TENSOR_METADATA and (plain not in ("size", "stride") or args):
        return TENSOR_METADATA[plain](target, *args)
    if plain in ("to", "to_dtype") and len(args) == 1 and isinstance(args[0], taeda.dtype):
        return target.to(args[0])
    return call(name, target, *args, **kwargs)
