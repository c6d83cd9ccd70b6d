"""Control flow as functions, which run eagerly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _missing

__path__: list[str] = []  # the modules in it are missing ones


def cond(pred: Any, true_fn: Callable, false_fn: Callable, operands: Any = ()) -> Any:
    """``true_fn(*operands)`` where `pred` holds, else ``false_fn(*operands)``.

    >>> torch.cond(torch.tensor(True), torch.sin, torch.cos, (torch.zeros(1),))
    tensor([0.])
    """
    if not isinstance(pred, bool | taeda.Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, taeda.Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, tuple | list):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor leaves, but got {operands}."
        )
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: Any) -> Any:
    """Replaces the inputs by ``body_fn(*inputs)`` as long as ``cond_fn(*inputs)`` holds."""
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor or int leaves, but got {carried_inputs}."
        )
    values = carried_inputs
    while cond_fn(*values):
        values = body_fn(*values)
        if len(values) != len(carried_inputs):
            raise RuntimeError(
                f"body_fn should return {len(carried_inputs)} values, but got {len(values)}"
            )
    return tuple(values)


__getattr__, __dir__ = _missing.attributes(__name__)
_missing.add_namesakes(__name__)
