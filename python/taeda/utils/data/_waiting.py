"""Waiting for the workers of a pass, and what is said when that takes long."""

from __future__ import annotations

import time
import warnings
from typing import Any

from ._schedule import Schedule
from ._utils import copied_memory
from ._utils.hangs import Watch
from ._utils.progress import Cell

__all__ = ["Waiting"]


class Waiting(Schedule):
    """A pass that waits for batches, for ``timeout`` at most, and warns of workers that hang."""

    _shutdown: bool  # whether the workers have been ended

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        self._warned: set[int] = set()  # workers: one warning a pass, however slow the samples
        self._copies_told = False

    def _get_data(self, waiting: list[int]) -> tuple[int, int, Any, int]:
        """(worker, number, content, bytes) of the next message of one of these workers."""
        begin = time.monotonic()
        watch = Watch(self._processes, begin)
        while True:
            if self._shutdown:
                raise RuntimeError("DataLoader: its workers have ended")
            for worker_id in waiting:
                message = self._processes[worker_id].get()
                if message is not None:
                    return worker_id, *message
            now = time.monotonic()
            if self._timeout > 0 and now - begin >= self._timeout:
                self._fail_timeout(waiting)
            self._warn_of_hangs(waiting, watch, now)
            left = self._timeout - (now - begin) if self._timeout > 0 else watch.interval
            self._sleep(waiting, min(left, watch.between_looks))

    def _sleep(self, waiting: list[int], seconds: float) -> None:
        raise NotImplementedError

    def _fail_timeout(self, waiting: list[int]) -> None:
        text = f"DataLoader timed out after {self._timeout} seconds"
        for i in waiting:
            worker = self._processes[i]
            index = self._indices.get(worker.cells()[Cell.BATCH])
            text += f"\n(worker {i} (pid {worker.pid}), {worker.where(index)})"
            stack = worker.stack()
            text += f"\nIts Python stack:\n{stack}" if stack else ""
        raise RuntimeError(text)

    def _warn_of_hangs(self, waiting: list[int], watch: Watch, now: float) -> None:
        for i in waiting:
            if i in self._warned or (seconds := watch.seconds_too_long(i, now)) == 0:
                continue
            self._warned.add(i)
            worker = self._processes[i]
            index = self._indices.get(worker.cells()[Cell.BATCH])
            stack = worker.stack()
            warnings.warn(
                f"DataLoader worker {i} (pid {worker.pid}) has been {worker.where(index)} for "
                f"{seconds:.0f} seconds" + (f"; its Python stack:\n{stack}" if stack else ""),
                stacklevel=5,
            )

    def _warn_of_copies(self, worker_id: int) -> None:
        if self._copies_told:
            return
        worker = self._processes[worker_id]
        nbytes = worker.cells()[Cell.COPIED_BYTES]
        if nbytes >= copied_memory.WARNING_BYTES:
            self._copies_told = True
            copied_memory.warn_of_copies(worker, nbytes, self._num_workers)
