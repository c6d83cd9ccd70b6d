"""Factories with ``pin_memory=True``, whose calls the bindings hand over here."""

from __future__ import annotations

from functools import reduce
from typing import Any

import taeda


def make(name: str, *args: Any, **options: Any) -> Any:
    """What a factory, "torch.zeros" or "Tensor.new_zeros", makes, in pinned memory."""
    function: Any = reduce(getattr, name.removeprefix("torch.").split("."), taeda)
    requires_grad = options.pop("requires_grad", False)
    made = function(*args, **{**options, "pin_memory": False})
    return made.pin_memory().requires_grad_(requires_grad)
