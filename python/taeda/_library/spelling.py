"""How operators of the table are shown to a `__torch_dispatch__`: the registry of spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.utils._mode_utils import no_dispatch

aten, ours = taeda.ops.aten, taeda.ops.taeda
#: Of the table's operators: their arguments -> (operator, args, kwargs, what makes the table's
#: results of the operator's, or None).
SPELLINGS: dict[str, Callable[..., tuple[Any, tuple, dict, Any]]] = {}


def spells(name: str) -> Callable:
    """A decorator: how calls of `name` are shown, "taeda::" or "aten::" and an overload with it."""

    def register(function: Callable) -> Callable:
        SPELLINGS[name if "::" in name else f"taeda::{name}"] = function
        return function

    return register


def define(schema: str) -> Callable:
    """A decorator: an operator of PyTorch's as a composition of the table's."""
    return lambda function: _C._define_composite(f"aten::{schema}", function)


def like(x: Tensor, sizes: Any) -> Tensor:
    """A tensor of which only the sizes are read."""
    if hasattr(x, "fake_mode"):
        return x._sized(sizes)
    with no_dispatch():
        return taeda.empty((), dtype=x.dtype, device=x.device).expand(sizes)
