"""Decompositions: operators written by simpler ones, for programs that work on graphs of them.

A table maps operators to functions. Those of this package are in `decompositions`; programs add
their own with `register_decomposition` and hand tables to ``make_fx``.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from taeda._ops import OpOverload, OpOverloadPacket
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

global_decomposition_table: dict[str, dict[Any, Callable]] = defaultdict(dict)
decomposition_table = global_decomposition_table["post_autograd"]
pre_autograd_decomposition_table = global_decomposition_table["pre_autograd"]
meta_table = global_decomposition_table["meta"]

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
        target = global_decomposition_table[type] if registry is None else registry

        def add(op: Any) -> None:
            for overload in _overloads(op):
                if overload in target:
                    raise RuntimeError(f"duplicate registrations for {overload}")
                target[overload] = fn

        tree_map(add, aten_op)
        return fn

    return register


@functools.cache
def _load() -> None:
    """Fills `decomposition_table` with those of this package."""
    from . import decompositions  # noqa: F401


def get_decompositions(aten_ops: Sequence[Any], type: str = "post_autograd") -> dict[Any, Callable]:
    """The decompositions there are of operators, and of all overloads of names."""
    _check_kind(type)
    _load()
    table = global_decomposition_table[type]
    return {op: table[op] for given in aten_ops for op in _overloads(given) if op in table}


def remove_decompositions(decompositions: dict[Any, Callable], aten_ops: Sequence[Any]) -> None:
    """Takes operators, and all overloads of names, out of a table."""
    for given in aten_ops:
        for op in _overloads(given):
            decompositions.pop(op, None)


def core_aten_decompositions() -> dict[Any, Callable]:
    """A table of all decompositions of this package, by overload."""
    _load()
    return {op: fn for op, fn in decomposition_table.items() if isinstance(op, OpOverload)}
