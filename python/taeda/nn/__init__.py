"""Building blocks of models: modules, their functions, initial values and helpers."""

from __future__ import annotations

import importlib
from typing import Any

from . import functional, init, modules, parameter
from .modules import *  # noqa: F403
from .modules import __all__ as _modules
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *_modules,
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",  # noqa: F405
]

_SUBMODULES = ("utils", "attention", "parallel", "common_types", "grad")
_QUANTIZED = ("intrinsic", "qat", "quantizable", "quantized")  # modules whose names raise


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES or name in _QUANTIZED:
        return importlib.import_module(f"{__name__}.{name}")
    if name == "DataParallel":
        from .parallel import DataParallel

        return DataParallel
    if name == "LinearCrossEntropyOptions":
        return modules.LinearCrossEntropyOptions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(
        {*globals(), *_SUBMODULES, *_QUANTIZED, "DataParallel", "LinearCrossEntropyOptions"}
    )


def factory_kwargs(kwargs: dict | None) -> dict:
    """The device, dtype and memory_format among ``kwargs``; TypeError for anything else."""
    if kwargs is None:
        return {}
    allowed = {"device", "dtype", "memory_format", "factory_kwargs"}
    if not kwargs.keys() <= allowed:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - allowed}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in ("device", "dtype", "memory_format"):
        if key in kwargs:
            if key in result:
                raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
            result[key] = kwargs[key]
    return result
