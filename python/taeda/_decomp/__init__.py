"""Decompositions: operators written by simpler ones, for programs that work on graphs of them.

A table maps operators to functions. `decomposition_table` has those of this package, which `table`
collects when it is first asked for; programs add their own with `register_decomposition` and hand
tables to ``make_fx``.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from taeda._ops import OpOverloadPacket
from taeda.utils._pytree import tree_map

__all__ = [
    "core_aten_decompositions",
    "decomposition_table",
    "get_decompositions",
    "meta_table",
    "pre_autograd_decomposition_table",
    "register_decomposition",
    "remove_decompositions",
]

__path__.append(f"{__path__[0]}/definitions.zip")  # the module `defined`, from the operator table

_tables: dict[str, dict[Any, Callable]] = defaultdict(dict)
_own: set[Any] = set()  # what of the first table is this package's, which programs may replace
_KINDS = ("post_autograd", "pre_autograd", "meta")


def _check_kind(kind: str) -> None:
    if kind not in _KINDS:
        raise AssertionError(f"type must be one of {set(_KINDS)}, got {kind!r}")


def _overloads(op: Any) -> list[Any]:
    """The overloads of a packet, or the operator itself."""
    if isinstance(op, OpOverloadPacket):
        return [getattr(op, name) for name in op.overloads()]
    return [op]


def register_decomposition(
    aten_op: Any,
    registry: dict[Any, Callable] | None = None,
    *,
    type: str = "post_autograd",
    unsafe: bool = False,
) -> Callable[[Callable], Callable]:
    """Decorator: the function decomposes an operator, or all overloads of a name, or a list's.

    Args:
        aten_op: such as ``torch.ops.aten.silu``.
        registry: the table it is put into; `decomposition_table` without.
        type: "post_autograd", "pre_autograd" or "meta": which table it is put into.
        unsafe: whether it is put in as it is; has no effect.

    >>> from torch._decomp import register_decomposition
    >>> table = {}
    >>> @register_decomposition(torch.ops.aten.square, table)
    ... def square(x):
    ...     return x * x
    >>> list(map(str, table))
    ['aten.square.default', 'aten.square.out']
    """
    _check_kind(type)

    def register(fn: Callable) -> Callable:
        target = _filled(type) if registry is None else registry

        def add(op: Any) -> None:
            for overload in _overloads(op):
                if overload in target and not (registry is None and overload in _own):
                    raise RuntimeError(f"duplicate registrations for {overload}")
                target[overload] = fn
                if registry is None:
                    _own.discard(overload)

        tree_map(add, aten_op)
        return fn

    return register


@functools.cache
def _load() -> None:
    """Fills the table of decompositions below autograd with those of this package."""
    from . import table

    found = table.load()
    _tables["post_autograd"].update(found)
    _own.update(found)


def _filled(type: str) -> dict[Any, Callable]:
    _check_kind(type)
    _load()
    return _tables[type]


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable]:
    """The decompositions there are of operators, and of all overloads of names.

    >>> from torch._decomp import get_decompositions
    >>> list(map(str, get_decompositions([torch.ops.aten.silu, torch.ops.aten.mm.default])))
    ['aten.silu.default', 'aten.silu.out']
    """
    table = _filled(type)
    return {op: table[op] for given in aten_ops for op in _overloads(given) if op in table}


def remove_decompositions(decompositions: dict[Any, Callable], aten_ops: Sequence[Any]) -> None:
    """Takes operators, and all overloads of names, out of a table."""
    for given in aten_ops:
        for op in _overloads(given):
            decompositions.pop(op, None)


def core_aten_decompositions() -> dict[Any, Callable]:
    """Decompositions of all that is no core ATen operator (`core`), by overload.

    >>> from torch._decomp import core_aten_decompositions
    >>> table = core_aten_decompositions()
    >>> torch.ops.aten.silu.default in table, torch.ops.aten.mm.default in table
    (True, False)
    """
    from .core import is_final

    return {op: fn for op, fn in _filled("post_autograd").items() if not is_final(op)}


def __getattr__(name: str) -> Any:
    if name == "global_decomposition_table":
        _load()
        return _tables
    kind = {"decomposition_table": "post_autograd", "meta_table": "meta"}.get(name)
    kind = "pre_autograd" if name == "pre_autograd_decomposition_table" else kind
    if kind is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _filled(kind)
