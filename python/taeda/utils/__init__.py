"""Tools around tensors and modules; submodules load when first used."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["set_module"]

_SUBMODULES = frozenset(
    "_cxx_pytree _device _python_dispatch _pytree checkpoint data dlpack hooks model_zoo "
    "serialization tensorboard".split()
)


def set_module(obj: Any, mod: str) -> None:
    """Sets ``obj.__module__``, so that ``obj`` shows its public address."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
