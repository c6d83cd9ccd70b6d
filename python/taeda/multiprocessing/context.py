"""Contexts: multiprocessing's three ways to start a process, with queues and pipes for tensors.

Daemonic processes, a pool's workers among them, and managers end with the process that started
them, also when it is killed. Other processes outlive it, as the standard library's do.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.context as standard
import os
from typing import Any

from taeda import _C

__all__ = ["ForkContext", "ForkServerContext", "Process", "SpawnContext", "get_context"]


class _EndsWithParent:
    """Of a process class: daemonic children are killed as soon as their starter has ended."""

    daemon: bool
    _parent_pid: int  # of the starter, also where a fork server is the parent

    def _bootstrap(self, *args: Any, **kwargs: Any) -> int:
        if self.daemon:
            _C._end_with_process(self._parent_pid)
        bootstrap: Any = super()
        return bootstrap._bootstrap(*args, **kwargs)


class Process(_EndsWithParent, standard.Process):
    """A process of the default start method.

    >>> import taeda as torch
    >>> process = torch.multiprocessing.Process(target=print, daemon=True)
    >>> process.start()
    >>> process.join()
    >>> process.exitcode
    0
    """


class _ForkProcess(_EndsWithParent, standard.ForkProcess):
    pass


class _SpawnProcess(_EndsWithParent, standard.SpawnProcess):
    pass


class _ForkServerProcess(_EndsWithParent, standard.ForkServerProcess):
    pass


class _TensorContext(standard.BaseContext):
    def get_context(self, method: str | None = None) -> Any:
        return self if method is None else get_context(method)

    def Queue(self, maxsize: int = 0) -> Any:
        """A queue of many writers and readers."""
        from .queue import Queue

        return Queue(maxsize, ctx=self)

    def JoinableQueue(self, maxsize: int = 0) -> Any:
        """A queue with ``task_done`` and ``join``."""
        from .queue import JoinableQueue

        return JoinableQueue(maxsize, ctx=self)

    def SimpleQueue(self) -> Any:
        """A queue without a thread."""
        from .queue import SimpleQueue

        return SimpleQueue(ctx=self)

    def Pipe(self, duplex: bool = True) -> Any:
        """Two connected ends."""
        from .connection import Pipe

        return Pipe(duplex)

    def Manager(self) -> Any:
        """A process that keeps objects for others; it ends with this one."""
        from multiprocessing.managers import SyncManager

        manager = SyncManager(ctx=self)
        manager.start(_C._end_with_process, (os.getpid(),))
        return manager

    def Pool(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
    ) -> Any:
        """Worker processes for ``map`` and ``apply``."""
        from .pool import Pool

        return Pool(processes, initializer, initargs, maxtasksperchild, context=self)


class ForkContext(_TensorContext, standard.ForkContext):
    """Children are copies of their parent."""

    Process = _ForkProcess


class SpawnContext(_TensorContext, standard.SpawnContext):
    """Children are fresh interpreters."""

    Process = _SpawnProcess


class ForkServerContext(_TensorContext, standard.ForkServerContext):
    """Children are copies of a small process."""

    Process = _ForkServerProcess


_CONTEXTS = {
    "fork": ForkContext(),
    "spawn": SpawnContext(),
    "forkserver": ForkServerContext(),
}


def get_context(method: str | None = None) -> Any:
    """The context of a start method; of the default one, which it then stays, without a name.

    >>> import taeda as torch
    >>> torch.multiprocessing.get_context("spawn").get_start_method()
    'spawn'
    """
    known: Any = multiprocessing.get_context(method)
    return _CONTEXTS[known._name]
