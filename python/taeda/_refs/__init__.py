"""``torch._refs``: reference implementations of operators, which here are the operators themselves.

>>> import torch._refs as refs
>>> refs.softmax(torch.zeros(2), 0)
tensor([0.5000, 0.5000])
"""

from __future__ import annotations

import importlib
from typing import Any

import taeda

_MODULES = ("fft", "linalg", "nn", "special")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name.startswith("__"):
        raise AttributeError(name)
    found = getattr(taeda, name, None) if name in _names() else None
    if found is None:
        found = getattr(taeda.ops.aten, name, None)
    if found is None:
        found = getattr(taeda.Tensor, name, None)
    if not callable(found):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return found


def _names() -> set[str]:
    from taeda import _C

    return {
        *_C._by_owner["torch"],
        *(n for n in vars(taeda) if not n.startswith("_")),
        *vars(taeda)["_LAZY"],
    }


def __dir__() -> list[str]:
    functions = (n for n in _names() if not n.startswith("_") and callable(getattr(taeda, n, None)))
    return sorted({*functions, *_MODULES})
