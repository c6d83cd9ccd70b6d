"""The decompositions of this package, by overload.

Four kinds, the earlier first: those written by hand, the definitions of the operator table,
operators that are made of others in any case, and forms of others: in place, or into ``out=``.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.utils._mode_utils import no_dispatch

from . import operators  # noqa: F401
from .core import is_primitive
from .registry import WRITTEN

_HALVES = (taeda.float16, taeda.bfloat16)


def load() -> dict[Any, Callable]:
    """A table of all decompositions."""
    defined = importlib.import_module("taeda._decomp.defined").DEFINITIONS
    table: dict[Any, Callable] = {}
    for op in _C._operators(None):
        if op.namespace not in ("aten", "taeda"):
            continue
        record = (op._operator_name, op._overload)
        if record in WRITTEN:
            table[op] = WRITTEN[record]
        elif record in defined and not is_primitive(op):
            table[op] = _definition(op, defined[record])
        elif _is_composite(op):
            table[op] = _composite(op)
    table.update(_forms(table))
    return table


def _is_composite(op: Any) -> bool:
    keys = ("CompositeImplicitAutograd", "CompositeExplicitAutograd")
    made_of_others = any(op.has_kernel_for_dispatch_key(key) for key in keys)
    return made_of_others and not op._schema.is_mutable


# --- definitions ---


def _definition(op: Any, function: Callable) -> Callable:
    """Runs a definition with the arguments of a call, as the operator's kernel would get them."""
    kinds = function.__annotations__  # of dimensions
    read = function.__code__.co_varnames[: function.__code__.co_argcount]
    schema = op._schema
    defaults = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    names = [a.name for a in schema.arguments]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        given = defaults | dict(zip(names, args)) | kwargs
        halves = [v.dtype for v in given.values() if isinstance(v, Tensor) and v.dtype in _HALVES]
        dtypes = _result_dtypes(op, given) if halves else None
        ordered = [given[name] for name in names]
        first = next((v for v in ordered if isinstance(v, Tensor)), None)
        values = [_as_read(v, name in kinds, first) for v, name in zip(ordered, read)]
        result = function(*values)
        return result if dtypes is None else _cast(result, dtypes)

    return run


def _as_read(value: Any, is_dim: bool, first: Tensor | None) -> Any:
    """An argument as definitions read it: dimensions from the front, half precision widened."""
    if isinstance(value, Tensor):
        return value.float() if value.dtype in _HALVES else value
    if is_dim and value is not None and first is not None:
        count = max(first.dim(), 1)
        return [d % count for d in value] if isinstance(value, list | tuple) else value % count
    return list(value) if isinstance(value, tuple) else value


def _result_dtypes(op: Any, given: dict[str, Any]) -> list[Any]:
    """The dtypes of an operator's results, which its form on the device meta says."""

    def on_meta(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [on_meta(item) for item in value]
        return value.to("meta") if isinstance(value, Tensor) else value

    with no_dispatch():
        result = op(**{name: on_meta(value) for name, value in given.items()})
    return [item.dtype for item in (result if isinstance(result, tuple | list) else [result])]


def _cast(result: Any, dtypes: list[Any]) -> Any:
    if isinstance(result, tuple | list):
        return tuple(item.to(dtype) for item, dtype in zip(result, dtypes))
    return result.to(dtypes[0])


# --- composites ---

_running = threading.local()


def _composite(op: Any) -> Callable:
    """Calls the operator, which calls others; NotImplemented where it is called from there."""

    @functools.wraps(op, updated=())
    def run(*args: Any, **kwargs: Any) -> Any:
        active = _running.__dict__.setdefault("active", set())
        if op in active:
            return NotImplemented
        active.add(op)
        try:
            return op(*args, **kwargs) if op._is_registered else op.decompose(*args, **kwargs)
        finally:
            active.discard(op)

    return run


# --- forms ---


def _forms(table: dict[Any, Callable]) -> Iterator[tuple[Any, Callable]]:
    """In-place and ``out=`` forms of what is in a table."""
    for op in _C._operators(None):
        if op.namespace != "aten" or op in table or not op._schema.is_mutable:
            continue
        if op._opname.endswith("_") and not op._opname.startswith("_"):
            functional = _C._operator(op._operator_name[:-1], op._overload)
            if functional is not None and functional in table:
                yield op, _in_place(table[functional])
        elif any(a.is_out for a in op._schema.arguments):
            functional = _functional(op, table)
            if functional is not None:
                yield op, _into(op, table[functional])


def _in_place(function: Callable) -> Callable:
    @functools.wraps(function)
    def run(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        result = function(self, *args, **kwargs)
        return result if result is NotImplemented else self.copy_(result)

    return run


def _functional(op: Any, table: dict[Any, Callable]) -> Any:
    """The overload in a table that takes the same arguments as an ``out=`` form but those."""
    read = [(a.name, str(a.type)) for a in op._schema.arguments if not a.is_out]
    for other in _C._operators(op._operator_name):
        if other in table and [(a.name, str(a.type)) for a in other._schema.arguments] == read:
            return other
    return None


def _into(op: Any, function: Callable) -> Callable:
    names = [a.name for a in op._schema.arguments if a.is_out]

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        outs = [kwargs.pop(name) for name in names]
        result = function(*args, **kwargs)
        if result is NotImplemented:
            return result
        for out, value in zip(outs, result if len(outs) > 1 else [result]):
            if out.shape != value.shape:
                out.resize_(value.shape)
            out.copy_(value)
        return outs[0] if len(outs) == 1 else tuple(outs)

    return run
