"""Distributed training is not part of this build, as ``is_available()`` says.

Programs that run in one process as well ask that, or ``is_initialized()``, and go on. What needs a
process group raises ValueError, as PyTorch does before ``init_process_group``, which raises
NotImplementedError here; the other names are those of ``taeda._missing.distributed``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from taeda import _missing
from taeda._missing.distributed import _ALONE, _COLLECTIVES


def is_available() -> bool:
    """Whether there are process groups: no."""
    return False


is_nccl_available = is_gloo_available = is_mpi_available = is_available
is_ucc_available = is_xccl_available = is_available


def is_backend_available(backend: str) -> bool:
    """Whether process groups can use a library: there are none."""
    return False


def is_initialized() -> bool:
    """Whether ``init_process_group`` has made a group: it makes none."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether ``torchrun`` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The process's number on this machine, which who started it put into LOCAL_RANK."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError(
            "LOCAL_RANK is not in the environment; give a fallback_rank for a process that runs "
            "alone"
        )
    return int(fallback_rank)


def get_default_backend_for_device(device: Any) -> str:
    """The library that PyTorch uses between devices of a type."""
    kind = device if isinstance(device, str) else device.type
    kind = kind.partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


class Backend(str):
    """The name of a library that process groups use, in small letters.

    >>> torch.distributed.Backend("NCCL")
    'nccl'
    """

    UNDEFINED, GLOO, NCCL, XCCL = "undefined", "gloo", "nccl", "xccl"
    UCC, MPI, FAKE = "ucc", "mpi", "fake"
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, FAKE]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "xpu": XCCL, "mps": GLOO}

    def __new__(cls, name: str) -> Any:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return name.lower()


class GroupMember:
    """The group of all processes, of which there is none, and what processes outside one get."""

    WORLD: Any = None
    NON_GROUP_MEMBER = -100


class group:
    WORLD: Any = None


def destroy_process_group(group: Any = None) -> None:
    """AssertionError, as in PyTorch: there is no group to destroy."""
    raise AssertionError("Process group cannot be None")


def _needs_group(name: str) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )

    return _missing.mark(function, f"torch.distributed.{name}", _ALONE)


for _name in (
    f"{_COLLECTIVES} get_rank get_world_size get_backend get_process_group_ranks get_global_rank "
    "get_group_rank new_group"
).split():
    globals()[_name] = _needs_group(_name)


def _record(fn: Callable[..., Any], error_handler: Any = None) -> Callable[..., Any]:
    """``elastic.multiprocessing.errors.record``: the function itself, since nobody who started
    this process reads a file of its errors."""
    return fn


from taeda.distributed import constants  # noqa: E402, F401

__getattr__, __dir__ = _missing.attributes(__name__)
