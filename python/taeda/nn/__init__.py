"""Building blocks of models: modules, their functions, initial values and helpers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import functional as functional
from . import init as init
from . import modules as modules
from . import parameter as parameter
from .modules import *  # noqa: F403
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter

_SUBMODULES = ("utils", "attention", "parallel", "common_types", "grad")
_QUANTIZED = ("intrinsic", "qat", "quantizable", "quantized")  # modules whose names raise

if TYPE_CHECKING:
    from . import attention as attention
    from . import common_types as common_types
    from . import grad as grad
    from . import parallel as parallel
    from . import utils as utils
    from .modules.linear_cross_entropy_options import (
        LinearCrossEntropyOptions as LinearCrossEntropyOptions,
    )
    from .parallel import DataParallel as DataParallel
else:
    __all__ = [
        *modules.__all__,
        "Buffer",
        "Parameter",
        "UninitializedBuffer",
        "UninitializedParameter",
        "functional",
        "init",
        "modules",
        "parameter",
        "utils",
    ]

    def __getattr__(name: str) -> Any:
        if name in _SUBMODULES or name in _QUANTIZED:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "DataParallel":
            from .parallel import DataParallel

            return DataParallel
        if name == "LinearCrossEntropyOptions":
            return modules.LinearCrossEntropyOptions
        from taeda._near_names import no_attribute

        raise no_attribute(f"module {__name__!r}", name, __dir__)

    del TYPE_CHECKING


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
