"""torch._C._nn: the operators that PyTorch has neither as functions of torch nor as methods, most
of them layers and losses.

They are the table's functions of nn.functional where those take what PyTorch's operators take, and
operators of torch.ops.aten where they do not: losses, whose reduction is a number here and a word
there, and what has several overloads or another name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import taeda
import taeda._library.aten
from taeda import _C, Tensor
from taeda._functions import private
from taeda._ops import _first_that_takes

_FUNCTIONS = {**_C._by_owner["nn.functional"], **_C._by_owner["_C._nn"]}
for _name in ("glu", "max_unpool2d", "max_unpool3d"):  # whose operators take other arguments
    del _FUNCTIONS[_name]
_FUNCTIONS["log_sigmoid"] = _FUNCTIONS["logsigmoid"]
# How operators begin that are elsewhere, and how gradients and parts of operators end.
_ELSEWHERE = ("_foreach_", "_nested", "_sparse_", "fft_", "linalg_", "sparse_", "special_", "__")
_PARTS = ("_backward", "_backward_data", "_forward", "_functional", "_jvp")


@functools.cache
def _names_elsewhere() -> frozenset[str]:
    """The functions of torch and the methods of Tensor."""
    return frozenset({*dir(taeda), *dir(Tensor), *private.NAMES, *private.OPERATORS})


def _is_here(name: str) -> bool:
    if name.startswith(_ELSEWHERE) or name.endswith(_PARTS) or name in _names_elsewhere():
        return False
    return hasattr(taeda.ops.aten, name)


def _overloads(name: str) -> list[Any]:
    """An operator's, but for those that write into out=."""
    found = _C._operators(f"aten::{name}")
    return [op for op in found if not any(a.is_out for a in op._schema.arguments)]


def _has_words(function: Any) -> bool:
    """Whether a reduction is given by its name."""
    return "reduction=" in (function.__text_signature__ or "")


def _reduces(op: Any) -> bool:
    return any(a.name == "reduction" for a in op._schema.arguments)


def _operator(name: str) -> Callable[..., Any]:
    """The function that calls an operator by the arguments' names in Python: the first is input."""
    qualified = f"aten::{name}"

    def operator(*args: Any, **kwargs: Any) -> Any:
        if not args and "input" in kwargs:
            args = (kwargs.pop("input"),)
        failures: list[str] = []
        found = _first_that_takes(_C._operators(qualified), args, kwargs, failures)
        if found is None:
            raise TypeError(
                f"{name}() received an invalid combination of arguments: {'; '.join(failures)}"
            )
        given = {a.name for a in found._schema.arguments[: len(args)]} | kwargs.keys()
        if "reduction" not in given and _reduces(found):
            kwargs["reduction"] = 0  # what PyTorch takes where these functions are given none
        return found(*args, **kwargs)

    operator.__name__ = operator.__qualname__ = name
    operator.__module__ = "torch._C._nn"
    operator.__doc__ = "\n".join(str(op._schema) for op in _overloads(name))
    return _C._overridable(operator)


@functools.cache
def _found(name: str) -> Callable[..., Any] | None:
    function = _FUNCTIONS.get(name)
    if function is not None and not _has_words(function) and len(_overloads(name)) < 2:
        return function
    return _operator(name) if _is_here(name) else None


def __getattr__(name: str) -> Any:
    if name == "_parse_to":
        return taeda._C._parse_to
    found = _found(name)
    if found is None:
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
    return found


def __dir__() -> list[str]:
    import taeda._decomp.operators  # defines the operators that only PyTorch's table has

    known = {*_FUNCTIONS, *dir(taeda.ops.aten)}
    return sorted({name for name in known if _found(name) is not None} | {"_parse_to"})
