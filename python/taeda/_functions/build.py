"""What torch says of its build, and of backends that taeda lacks."""

from __future__ import annotations

import enum
from collections.abc import Callable
from importlib import import_module
from typing import Any

import taeda
from taeda import _C
from taeda._C import DispatchKey, DispatchKeySet  # noqa: F401
from taeda.jit import fork, wait  # noqa: F401
from taeda.storage import UntypedStorage as StorageBase  # noqa: F401

Tag: Any = import_module("taeda._library.tags").Tag
has_lapack = has_spectral = True
has_mkl = has_openmp = False
USE_GLOBAL_DEPS = USE_RTLD_GLOBAL_WITH_LIBTORCH = False
Storage = taeda.FloatStorage
legacy_contiguous_format = taeda.contiguous_format
DisableTorchFunction = _C.DisableTorchFunction
DisableTorchFunctionSubclass = _C.DisableTorchFunctionSubclass


def compiled_with_cxx11_abi() -> bool:
    """True: the library's strings are those of C++11."""
    return True


def is_vulkan_available() -> bool:
    """False: there is no such backend."""
    return False


def _nnpack_available() -> bool:
    """False: convolutions are taeda's own."""
    return False


def init_num_threads() -> None:
    """Nothing to do: the pool of threads starts when it is used."""


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """As `torch.autograd.set_detect_anomaly`, without a block's end."""
    taeda.autograd.set_detect_anomaly(enabled, check_nan)


@_C._overridable
def sym_sqrt(a: Any) -> float:
    """The square root of a number."""
    return float(a) ** 0.5


class classproperty:
    """A property of a class."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.function(type(instance) if owner is None else owner)


# Operators that PyTorch keeps out of its interface.
PRIVATE_OPS = ("unique_dim",)


class AggregationType(enum.Enum):
    """How gradients of several uses are put together."""

    SUM = 0
    AVG = 1


SUM, AVG = AggregationType.SUM, AggregationType.AVG
