"""multiprocessing with tensors: those sent to another process share their memory with it.

All of the standard module, and how its queues and pipes send tensors: the first time, the tensor's
storage moves to shared memory (``Tensor.share_memory_``); what is sent is the handle of that
memory, whatever its size. Both sides then see each other's changes.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions
from .spawn import ProcessContext, ProcessExitedException, ProcessRaisedException, spawn
from .spawn import start_processes as start_processes

__all__ = [
    *multiprocessing.__all__,
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def get_all_sharing_strategies() -> set[str]:
    """How memory can be shared: by the handle of an anonymous file.

    >>> import taeda as torch
    >>> torch.multiprocessing.get_all_sharing_strategies()
    {'file_descriptor'}
    """
    return {"file_descriptor"}


def get_sharing_strategy() -> str:
    """The strategy in use.

    >>> import taeda as torch
    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return "file_descriptor"


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses the strategy; there is one.

    >>> import taeda as torch
    >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    if new_strategy != "file_descriptor":
        raise NotImplementedError(f"torch.multiprocessing: the strategy '{new_strategy}'")


init_reductions()
