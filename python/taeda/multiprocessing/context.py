"""Contexts: multiprocessing's three ways to start a process, with queues and pipes for tensors."""

from __future__ import annotations

import multiprocessing
import multiprocessing.context as standard
from typing import Any

__all__ = ["ForkContext", "ForkServerContext", "SpawnContext", "get_context"]


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


class SpawnContext(_TensorContext, standard.SpawnContext):
    """Children are fresh interpreters."""


class ForkServerContext(_TensorContext, standard.ForkServerContext):
    """Children are copies of a small process."""


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
