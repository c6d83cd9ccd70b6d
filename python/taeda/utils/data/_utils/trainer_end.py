"""The trainer's end of what connects it with a worker process: tasks out, batches in."""

from __future__ import annotations

import collections
import os
import pickle
from typing import Any

from taeda import _C
from taeda._utils import ExceptionWrapper

from .messages import loads
from .progress import EPOCH_BITS, OVERFLOW, Cell, stats_of, where_in_batch

__all__ = ["TrainerEnd"]

_SPARE_MESSAGES = 2  # the other side's count may be seen before the room that it stands for


class _Overflow:
    """A message that arrives by the pipe, as far as it has come."""

    def __init__(self, head: bytes) -> None:
        self.number, self.nbytes = pickle.loads(head)
        self.data = bytearray()


class TrainerEnd:
    """A channel to a worker, its numbers, and a pipe from it for what the channel has no room for.

    Args:
        worker_id: the worker's number.
        capacity: messages that may be under way, either way.
    """

    pid: int  # of the worker

    def __init__(self, worker_id: int, capacity: int) -> None:
        self.id = worker_id
        self._channel = _C._WorkerChannel(capacity)  # type: ignore[attr-defined]
        self._capacity = capacity - _SPARE_MESSAGES
        self._sent = 0
        self._backlog: collections.deque = collections.deque()  # tasks there is no room for yet
        self._cells = memoryview(self._channel)
        self._cell_values: list[int] = []
        self._overflow: _Overflow | None = None
        self._pipe, self._workers_pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self.pipe = -1  # the descriptor by which a message arrives now; -1 while none does
        self.nbytes = 0  # of all that the worker has sent

    @property
    def channel(self) -> Any:
        """The trainer's end of the channel."""
        return self._channel

    def cells(self) -> list[int]:
        """The worker's numbers."""
        return self._cell_values or self._cells.tolist()

    @property
    def received(self) -> int:
        """Bytes of that message so far: who sends them does not hang."""
        return 0 if self._overflow is None else len(self._overflow.data)

    def set_epoch(self, epoch: int) -> None:
        """Makes tasks of other epochs void, and drops those not sent and results not read."""
        self._cells[Cell.CURRENT_EPOCH] = epoch
        self._backlog.clear()
        while self._overflow is None and (message := self._receive()) is not None:
            if message[0] == OVERFLOW:
                self._overflow, self.pipe = _Overflow(message[1]), self._pipe

    def put(self, number: int, task: Any) -> None:
        """Gives it something to do, at once or when there is room."""
        self._backlog.append((number, task))
        self.flush()

    def flush(self) -> bool:
        """Sends what there is room for; whether that was everything."""
        while self._backlog:
            if self._sent - self._cells[Cell.TASKS_READ] >= self._capacity:
                return False
            number, task = self._backlog[0]
            if not self._channel.send(number, pickle.dumps(task, 5), []):
                raise MemoryError("DataLoader: no memory left to share with a worker")
            self._sent += 1
            self._backlog.popleft()
        return True

    def _receive(self) -> tuple | None:
        message = self._channel.receive()
        if message is not None:
            self._cells[Cell.RESULTS_READ] += 1
        return message

    def get(self) -> tuple[int, Any, int] | None:
        """(number of a message, its content, its bytes), None when none is complete yet."""
        if self._overflow is not None:
            return self._read_pipe()
        message = self._receive()
        if message is None:
            return None
        number, content, items, nbytes = message
        if number == OVERFLOW:
            self._overflow, self.pipe = _Overflow(content), self._pipe
            return self._read_pipe()
        nbytes += len(content)
        self.nbytes += nbytes
        return number, self._unpickle(number, content, items), nbytes

    def _unpickle(self, number: int, content: bytes, items: list) -> Any:
        """(batch, random state, state of the dataset); an exception is the batch."""
        try:
            return loads(content, items)
        except Exception:
            batch = number & ((1 << EPOCH_BITS) - 1)
            where = f"unpickling batch {batch} of DataLoader worker {self.id} (pid {self.pid})"
            return ExceptionWrapper(where=where), None, None

    def _read_pipe(self) -> tuple[int, Any, int] | None:
        """What :meth:`get` gives of the message that arrives by the pipe. Never waits."""
        message = self._overflow
        assert message is not None
        while len(message.data) < message.nbytes:
            try:
                chunk = os.read(self._pipe, min(message.nbytes - len(message.data), 1 << 20))
            except BlockingIOError:
                return None
            if not chunk:
                return None  # its end has closed: the process has ended
            message.data += chunk
        self._overflow, self.pipe = None, -1
        if message.number >> EPOCH_BITS != self._cells[Cell.CURRENT_EPOCH]:
            return message.number, None, 0
        self.nbytes += message.nbytes
        data = self._unpickle(message.number, bytes(message.data), [])
        return message.number, data, message.nbytes

    def where(self, index: Any) -> str:
        """What the worker does: "loading sample 2 of batch 3 (index 17)"."""
        return where_in_batch(self.cells(), index)

    def stats(self) -> dict[str, Any]:
        """Its part of ``DataLoader.stats()``."""
        return {"id": self.id, "pid": self.pid, **stats_of(self.cells(), self.nbytes)}

    def close(self) -> None:
        """Tells the worker to end after the sample that it loads."""
        self._cells[Cell.CURRENT_EPOCH] = -1
        self._channel.close()
        os.close(self._pipe)  # wakes one that writes to it

    def retire(self) -> None:
        """Lets go of the channel of a worker that has ended."""
        self._cell_values = self._cells.tolist()
        self._cells.release()
        self._channel.retire()
