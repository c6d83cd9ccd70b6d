"""How a worker process sends its batches: through the channel, or by a pipe where that is full."""

from __future__ import annotations

import contextlib
import itertools
import os
import pickle
import time
from typing import Any

from taeda._utils import ExceptionWrapper

from .collate import default_collate
from .messages import dumps
from .progress import EPOCH_BITS, OVERFLOW, Cell, name_indices
from .seeds import Snapshots
from .task import Task, state_of_dataset

__all__ = ["Sender", "is_alive"]

_SECONDS_BETWEEN_LOOKS = 0.01  # whether the trainer has read enough


class Sender:
    """Sends a worker's batches, each with what a pass would go on from after it."""

    def __init__(self, link: Any, channel: Any, task: Task, trainer: int) -> None:
        self._link, self._channel, self._task, self._trainer = link, channel, task, trainer
        self._cells = memoryview(channel)
        self._sent = 0
        self._snapshots = Snapshots()

    def begin_epoch(self) -> None:
        """Random states are sent again, whether or not they have changed."""
        self._snapshots = Snapshots()

    def send(self, number: int, data: Any, index: Any, fetcher: Any, where: str, at: str) -> None:
        """Sends a batch, or why it cannot be sent; neither where the trainer wants it no more."""
        state: tuple = (self._snapshots.take(), None)
        try:
            state = (state[0], state_of_dataset(self._task, fetcher))
        except Exception:
            data = ExceptionWrapper(where=where)
        try:
            content, items = dumps((data, *state))
        except Exception as error:
            if not isinstance(data, ExceptionWrapper):
                note = f"\n({at}: {self._describe(data, index)})\n"
                data = ExceptionWrapper((type(error), error, error.__traceback__), where, note)
            content, items = _dump_exception(data, state)
        if not self._wait_for_room(number):
            return
        if self._channel.send(number, content, items):
            self._sent += 1
            self._link.notify()
        else:
            self._send_by_pipe(number, (data, *state))

    def _describe(self, data: Any, index: Any) -> str:
        """What of a batch cannot be pickled."""
        from .unpicklable import describe

        samples = None if self._task.collate_fn is default_collate else index
        batch = f"batch {self._cells[Cell.BATCH]}{name_indices(index)}"
        return f"{batch} {describe(data, samples, dumps)}"

    def _wait_for_room(self, number: int) -> bool:
        """Waits until the trainer has read enough results; False when it wants this one no more."""
        cells = self._cells
        while number >> EPOCH_BITS == cells[Cell.CURRENT_EPOCH]:
            if self._sent - cells[Cell.RESULTS_READ] < self._link.capacity:
                return True
            if self._channel.closed or not is_alive(self._trainer):
                break
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        return False

    def _send_by_pipe(self, number: int, content: Any) -> None:
        """For what there is no shared memory for."""
        file = pickle.dumps(content, 5)
        head = pickle.dumps((number, len(file)))
        while not self._channel.send(OVERFLOW, head, []):
            if self._channel.closed or not is_alive(self._trainer):
                return
            time.sleep(_SECONDS_BETWEEN_LOOKS)  # until the trainer has read the last one
        self._sent += 1
        self._link.notify()
        self._link.write(file)


def _dump_exception(wrapper: Any, state: tuple) -> tuple[bytes, list]:
    """A message with an exception, by another type where its own cannot be pickled, and without
    the dataset's state where that cannot."""
    kinds = (wrapper.exc_type, RuntimeError)
    for kind, rest in itertools.product(kinds, (state, (state[0], None))):
        wrapper.exc_type = kind
        with contextlib.suppress(Exception):
            return dumps((wrapper, *rest))
    return dumps((wrapper, None, None))


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
