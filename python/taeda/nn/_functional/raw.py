"""Access to the operators of the table from the Python half of nn.functional."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import _C, Tensor

_TABLES = tuple(_C._by_owner.get(name, {}) for name in ("nn.functional", "_C._nn", "torch"))


def has(name: str) -> bool:
    """Whether the table has an operator of this name."""
    return any(name in table for table in _TABLES)


def raw(name: str) -> Callable[..., Any]:
    """The table's operator; when there is none, a function that says so when it is called."""
    for table in _TABLES:
        if name in table:
            return table[name]

    def missing(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"nn.functional: the operator {name} is not there yet")

    missing.__name__ = name
    return missing


def raw_(name: str) -> Callable[..., Tensor]:
    """The in-place form of an operator."""
    if has(name + "_"):
        return raw(name + "_")
    function = raw(name)

    def inplace(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        # The copy is what backward reads: the input itself is about to be overwritten.
        saved = input.clone()
        return input.copy_(function(saved, *args, **kwargs))

    inplace.__name__ = name + "_"
    return inplace
