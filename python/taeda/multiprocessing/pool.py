"""Pools of processes; tensors in arguments and results share their memory.

A worker that is killed is replaced, as in the standard library; there the task that it had never
ends, here it raises. A worker notes which message it is about to take before it takes it. Who is
told of its end looks whether that task's result has come.
"""

from __future__ import annotations

import itertools
import multiprocessing.pool
import queue
import signal
import struct
from multiprocessing.reduction import ForkingPickler
from typing import Any

from taeda import UntypedStorage

from .reductions import Message

__all__ = ["Pool"]

_StandardPool: Any = multiprocessing.pool.Pool
_WORD_BYTES = 8
_HEAD = struct.Struct("=cq")  # of a result, in front of its pickle: the number of its task
_IS_RESULT = b"\0"  # with which no pickle begins


class Pool(_StandardPool):
    """``multiprocessing.pool.Pool`` with queues for tensors.

    A task whose worker is killed, or exits, raises RuntimeError where its result is asked for.
    Arguments are pickled by the call: what is written to a tensor afterwards, in place, is seen by
    the worker, as in a queue. ``imap`` and ``imap_unordered`` do that as they read their iterable.

    >>> import taeda as torch
    >>> with torch.multiprocessing.get_context("fork").Pool(2) as pool:
    ...     [x.item() for x in pool.map(torch.sum, [torch.ones(3), torch.ones(5)])]
    [3.0, 5.0]
    """

    _ctx: Any
    _pool: Any
    _processes: int

    def __init__(
        self,
        processes: int | None = None,
        initializer: Any = None,
        initargs: Any = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
    ) -> None:
        from .context import get_context

        super().__init__(
            processes, initializer, initargs, maxtasksperchild, context or get_context()
        )

    def _setup_queues(self) -> None:
        self._inqueue, self._outqueue = self._ctx.SimpleQueue(), self._ctx.SimpleQueue()
        tasks = _Tasks(self._inqueue, self._outqueue)
        self._quick_put, self._quick_get = tasks.put, tasks.get_result
        self._pool = _Workers(tasks)

    def _repopulate_pool(self) -> None:
        self._taskqueue = _TaskQueue()
        super()._repopulate_pool()

    def _map_async(
        self, func: Any, iterable: Any, mapper: Any, chunksize: int | None = None, *callbacks: Any,
        **named: Any,
    ) -> Any:  # fmt: skip
        """As the standard one, which divides by the number of workers that live just now."""
        if not hasattr(iterable, "__len__"):
            iterable = list(iterable)
        if chunksize is None:
            chunksize = -(-len(iterable) // (4 * self._processes))
        return super()._map_async(func, iterable, mapper, chunksize, *callbacks, **named)

    @staticmethod
    def Process(ctx: Any, *args: Any, **kwds: Any) -> Any:
        """A worker, which says what it does in a word of shared memory."""
        target, (inqueue, outqueue, *rest) = kwds["target"], kwds["args"]
        current = UntypedStorage._new_shared(_WORD_BYTES)
        _word(current)[0] = 0
        process = ctx.Process(target=_work, args=(target, inqueue, outqueue, current, *rest))
        process._taeda_current = current
        return process


def _word(storage: Any) -> memoryview:
    return memoryview(storage).cast("q")


def _work(target: Any, inqueue: Any, outqueue: Any, current: Any, *rest: Any) -> None:
    """A worker's loop, the standard one, with ends of the queues that note what is taken."""
    word = _word(current)
    target(_TasksOfWorker(inqueue, word), _ResultsOfWorker(outqueue, word), *rest)


class _TasksOfWorker:
    def __init__(self, queue: Any, word: memoryview) -> None:
        self._queue, self._word = queue, word
        self._reader, self._writer = queue._reader, queue._writer

    def get(self) -> Any:
        with self._queue._rlock:
            self._word[0] = self._reader.peek_number()
            data = self._reader.recv_bytes()
        return ForkingPickler.loads(data)


class _ResultsOfWorker:
    def __init__(self, queue: Any, word: memoryview) -> None:
        self._queue, self._word = queue, word
        self._reader, self._writer = queue._reader, queue._writer

    def put(self, result: tuple) -> None:
        message = Message(result, _HEAD.pack(_IS_RESULT, self._word[0]))
        with self._queue._wlock:
            self._writer.send_message(message)
        self._word[0] = 0


class _Task(tuple):
    """(job, index, function, arguments, keywords), pickled; or why it cannot be."""

    message: Message | None = None
    error: Exception | None = None

    def prepare(self) -> _Task:
        """Pickles."""
        try:
            self.message = Message(tuple(self))
        except Exception as error:
            self.error = error
        return self

    def take(self) -> Message:
        """The pickle, which is the caller's then."""
        if self.error is not None:
            raise self.error
        message, self.message = self.message, None
        return message or Message(tuple(self))

    def __del__(self) -> None:
        if self.message is not None:  # of a pool that has ended
            self.message.drop()


class _TaskQueue(queue.SimpleQueue):
    """From the callers to the thread that sends tasks; all but ``imap``'s are pickled here."""

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if item is not None:
            tasks, set_length = item
            if set_length is None:
                item = [_Task(task).prepare() for task in tasks], None
        super().put(item, block, timeout)


class _Lost:
    """In place of a result: the worker that had the task has ended."""

    def __init__(self, number: int, how: str) -> None:
        self.number, self.how = number, how


class _Tasks:
    """The pool's ends of both queues, and the tasks that are on their way between them."""

    def __init__(self, tasks: Any, results: Any) -> None:
        self._writer, self._results = tasks._writer, results
        self._numbers = itertools.count(1)
        self._running: dict[int, tuple] = {}  # by number: job, index, what is called

    def put(self, task: Any) -> None:
        """Sends a task, or None, which ends a worker."""
        message = task.take() if isinstance(task, _Task) else Message(task)
        number = next(self._numbers)
        if task is not None:
            self._running[number] = (*task[:2], _name(task[2], task[3]))
        try:
            self._writer.send_message(message, number)
        except BaseException:
            self._running.pop(number, None)
            raise

    def get_result(self) -> Any:
        """(job, index, (whether it succeeded, value)) of the next task that has ended."""
        while True:
            with self._results._rlock:
                data = self._results._reader.recv_bytes()
            if data[:1] == _IS_RESULT:
                return self._unpickle(data)
            result = ForkingPickler.loads(data)
            if result is None:
                return None
            task = self._running.pop(result.number, None)
            if task is not None:  # else the result came before its worker ended
                job, index, what = task
                error = RuntimeError(
                    f"torch.multiprocessing.Pool: {result.how} while it ran {what}, whose result "
                    "is lost; another process has taken its place"
                )
                return job, index, (False, error)

    def _unpickle(self, data: bytes) -> tuple:
        """A result; where it cannot be unpickled, that is its task's error."""
        _, number = _HEAD.unpack_from(data)
        task = self._running.pop(number, None)
        try:
            return ForkingPickler.loads(memoryview(data)[_HEAD.size :])
        except BaseException as error:  # any that gets out would end the thread, and all tasks wait
            if task is None:
                raise
            job, index, what = task
            told = RuntimeError(
                f"torch.multiprocessing.Pool: what {what} returned or raised cannot be unpickled: "
                f"{type(error).__name__}: {error}"
            )
            told.__cause__ = error
            return job, index, (False, told)

    def lose(self, worker: Any) -> None:
        """Says that the task of a worker that has ended will have no result, behind what the
        worker may have sent."""
        number = _word(worker._taeda_current)[0]
        if number:
            self._results.put(_Lost(number, _how_it_ended(worker)))


def _name(function: Any, args: tuple) -> str:
    chunk = getattr(function, "__module__", "") == "multiprocessing.pool"  # of a map
    called = args[0][0] if chunk and isinstance(args[0], tuple) else function
    return str(getattr(called, "__qualname__", repr(called)))


def _how_it_ended(worker: Any) -> str:
    code = worker.exitcode
    who = f"worker process {worker.name} (pid {worker.pid})"
    if code >= 0:
        return f"{who} exited with code {code}"
    return f"{who} was killed by signal {signal.Signals(-code).name}"


class _Workers(list):
    """The pool's processes. The standard library takes one out when it has ended."""

    def __init__(self, tasks: _Tasks) -> None:
        super().__init__()
        self._tasks = tasks

    def __delitem__(self, i: Any) -> None:
        worker = self[i]
        super().__delitem__(i)
        self._tasks.lose(worker)
