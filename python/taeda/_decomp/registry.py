"""Decompositions written by hand, by operator, and operators that only PyTorch's table has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

# Operators that the package defines elsewhere come first.
import taeda._functions.indices
import taeda._library.aten
from taeda import _C, Tensor

#: ("aten::silu", "") -> the function
WRITTEN: dict[tuple[str, str], Callable[..., Any]] = {}
_HALVES = (taeda.float16, taeda.bfloat16)


def _record(name: str) -> tuple[str, str]:
    """ "add.Tensor" as a record's name and overload."""
    name, _, overload = name.partition(".")
    return name if "::" in name else f"aten::{name}", "" if overload == "default" else overload


def of(*names: str) -> Callable[[Callable], Callable]:
    """A decorator: the function is what operators, "silu" or "lerp.Scalar", are made of."""

    def register(function: Callable) -> Callable:
        WRITTEN.update((_record(name), function) for name in names)
        return function

    return register


def new(schema: str) -> Callable[[Callable], Callable]:
    """A decorator: the function decomposes an operator, and is it where the table has none."""

    def register(function: Callable) -> Callable:
        record = _record(schema.partition("(")[0])
        WRITTEN[record] = function
        if _C._operator(*record) is None:
            _C._define_composite(f"aten::{schema}", function)
        return function

    return register


def wide(function: Callable) -> Callable:
    """A decorator: numbers in half precision are computed with in float32."""

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        halves = [a.dtype for a in args if isinstance(a, Tensor) and a.dtype in _HALVES]
        if not halves:
            return function(*args, **kwargs)
        wider = [a.float() if isinstance(a, Tensor) and a.dtype in _HALVES else a for a in args]
        return _narrowed(function(*wider, **kwargs), halves[0])

    return run


def _narrowed(result: Any, dtype: Any) -> Any:
    if isinstance(result, tuple):
        return tuple(_narrowed(item, dtype) for item in result)
    is_wide = isinstance(result, Tensor) and result.dtype == taeda.float32
    return result.to(dtype) if is_wide else result


def reduce(loss: Tensor, reduction: int) -> Tensor:
    """The elements of a loss (0), their mean (1) or their sum (2)."""
    return loss if reduction == 0 else loss.mean() if reduction == 1 else loss.sum()
