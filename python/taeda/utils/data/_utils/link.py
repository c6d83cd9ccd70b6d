"""A worker process's end of what connects it with the trainer."""

from __future__ import annotations

import contextlib
import os
import signal
import traceback
from typing import Any

from taeda import _C

from .progress import Cell
from .shared_pages import prefers_memory

__all__ = ["Link"]

_MOST_TRACEBACK_BYTES = 1 << 16


class Link:
    """A worker's end: the channel, the descriptor that wakes the trainer, a pipe to it."""

    def __init__(
        self, channel: Any, event: int, pipe: int, capacity: int, trainers: list[int]
    ) -> None:
        self._channel, self._event, self._pipe = channel, event, pipe
        self.capacity = capacity  # results that may be under way
        self._trainers = trainers  # descriptors that a forked worker has no use for
        self._pages: Any = None  # what forked workers share
        self.is_forked = True
        self._stacks = -1  # a descriptor of the channel's file, where stacks are written

    def __getstate__(self) -> tuple:
        from multiprocessing.reduction import DupFd

        handles = (self._channel.fileno(), self._event, self._pipe)
        return (*map(DupFd, handles), self.capacity)

    def __setstate__(self, state: tuple) -> None:
        *handles, self.capacity = state
        channel, self._event, self._pipe = (handle.detach() for handle in handles)
        self._channel = _C._WorkerChannel._open(channel)  # type: ignore[attr-defined]
        os.close(channel)
        self._pages = None
        self.is_forked = False
        self._stacks = -1

    def attach(self) -> Any:
        """The channel, in the worker."""
        if self.is_forked:
            self._channel.serve()
            for handle in self._trainers:
                os.close(handle)
        return self._channel

    def share_pages(self, pages: Any) -> None:
        """Lets the worker, if it is forked, share pages of memory with the others."""
        self._pages = pages

    def start_sharing_pages(self, workers: int) -> Any:
        """The pages, in the worker; None where they are not shared."""
        if self._pages is not None:
            self._pages.start(workers, prefers_memory())
        return self._pages

    def notify(self) -> None:
        """Wakes the trainer if it sleeps."""
        self._channel.notify(self._event)

    def write(self, data: bytes) -> None:
        """Sends bytes by the pipe."""
        view = memoryview(data)
        while view:
            view = view[os.write(self._pipe, view) :]

    def write_stacks_on_signal(self, cells: memoryview) -> None:
        """Makes the process write its Python stacks to the channel's file when it crashes, and
        when it gets the signal of ``Cell.SIGNAL``, which a thread without Python takes, so that no
        system call of a sample is interrupted."""
        import faulthandler

        try:
            file = os.open(f"/proc/self/fd/{self._channel.fileno()}", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return  # without /proc, without stacks
        os.lseek(file, self._channel.stack_offset(), os.SEEK_SET)
        self._stacks = file
        faulthandler.enable(file)
        number = _C._watch_signal()  # type: ignore[attr-defined]
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})
            faulthandler.register(number, file, all_threads=True, chain=False)
            cells[Cell.SIGNAL] = number

    def write_traceback(self) -> None:
        """Writes that of the current exception, which ends the worker, to the same place."""
        if self._stacks < 0:
            return
        with contextlib.suppress(Exception):
            text = traceback.format_exc().encode(errors="replace")[-_MOST_TRACEBACK_BYTES:]
            os.write(self._stacks, text)
