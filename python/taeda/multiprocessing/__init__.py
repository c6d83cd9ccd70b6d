"""multiprocessing with tensors: those sent to another process share their memory with it.

All of the standard module, and how its queues and pipes send tensors: the first time, the tensor's
storage moves to shared memory (``Tensor.share_memory_``); what is sent is the name of that memory,
whatever its size. Both sides then see each other's changes. The memory goes when no process has a
tensor on it, also when some of them were killed. docs/notes/multiprocessing.md has the design.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing import *  # noqa: F403
from typing import Any

from .context import Process as Process  # type: ignore[assignment]
from .context import get_context as get_context
from .reductions import init_reductions
from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *multiprocessing.__all__,
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies() -> set[str]:
    """The names that ``set_sharing_strategy`` takes. Memory is shared in one way whatever is
    chosen: by few anonymous files that have no name and need few descriptors.

    >>> import taeda as torch
    >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
    ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """The name that was chosen.

    >>> import taeda as torch
    >>> torch.multiprocessing.get_sharing_strategy()
    'file_descriptor'
    """
    return _strategy


def set_sharing_strategy(new_strategy: str) -> None:
    """Chooses a name; what 'file_system' avoids, a descriptor a tensor, is avoided by both.

    >>> import taeda as torch
    >>> torch.multiprocessing.set_sharing_strategy("file_descriptor")
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(
            f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}"
        )
    _strategy = new_strategy


def Queue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]
    """A queue of the default context.

    >>> import taeda as torch
    >>> queue = torch.multiprocessing.Queue()
    >>> x = torch.zeros(2)
    >>> queue.put(x)
    >>> x += 1  # also after put: the memory is the same
    >>> queue.get()
    tensor([1., 1.])
    """
    return get_context().Queue(maxsize)


def JoinableQueue(maxsize: int = 0) -> Any:  # type: ignore[no-redef]
    """A queue with ``task_done`` and ``join``, of the default context."""
    return get_context().JoinableQueue(maxsize)


def SimpleQueue() -> Any:  # type: ignore[no-redef]
    """A queue without a thread, of the default context."""
    return get_context().SimpleQueue()


def Pipe(duplex: bool = True) -> Any:  # type: ignore[no-redef]
    """Two connected ends; without ``duplex`` the first receives and the second sends."""
    return get_context().Pipe(duplex)


def Manager() -> Any:  # type: ignore[no-redef]
    """A process that keeps objects for others, of the default context; it ends with this one."""
    return get_context().Manager()


def Pool(  # type: ignore[no-redef]
    processes: int | None = None,
    initializer: Any = None,
    initargs: Any = (),
    maxtasksperchild: int | None = None,
) -> Any:
    """A pool of processes of the default context."""
    return get_context().Pool(processes, initializer, initargs, maxtasksperchild)


init_reductions()
