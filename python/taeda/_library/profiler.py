"""The operators that enter and leave a named block of a profile, which traced programs contain."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.autograd.profiler import record_function


def _enter(name: str, args: str | None = None) -> Tensor:
    """Enters a block; returns a tensor without meaning that carries it."""
    handle: Any = taeda.empty(0, dtype=taeda.uint8)
    handle._block = record_function(name, args).__enter__()
    return handle


def _exit(handle: Tensor) -> None:
    """Leaves the block of a handle; a second time does nothing."""
    block = getattr(handle, "_block", None)
    if block is None:
        raise RuntimeError("profiler::_record_function_exit: the tensor is no handle of a block")
    block.__exit__()


_C._define_composite("profiler::_record_function_enter(str name, str? args=None) -> Tensor", _enter)
_C._define_composite("profiler::_record_function_exit(Tensor handle) -> ()", _exit)
# The pair of newer traces; the handle is of a class in PyTorch.
_C._define_composite(
    "profiler::_record_function_enter_new(str name, str? args=None) -> Tensor", _enter
)
_C._define_composite("profiler::_record_function_exit._RecordFunction(Tensor handle) -> ()", _exit)
