"""Queues between processes whose tensors share their memory.

``put`` pickles in the calling thread: what is written to a tensor afterwards, in place, is seen by
whoever gets it. A small message is sent at once if nobody is in the way; others by a thread, so
that ``put`` does not wait for a reader.
"""

from __future__ import annotations

import contextlib
import errno
import multiprocessing.queues
import threading
import time
import weakref
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize, info, is_exiting
from queue import Empty, Full
from typing import Any

from .connection import Pipe
from .file_lock import FileLock
from .reductions import Message

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]

_END = object()
_StandardQueue: Any = multiprocessing.queues.Queue  # whose attributes are nowhere declared
_StandardJoinableQueue: Any = multiprocessing.queues.JoinableQueue
_StandardSimpleQueue: Any = multiprocessing.queues.SimpleQueue


class Queue(_StandardQueue):
    """``multiprocessing.Queue`` for tensors; made by ``torch.multiprocessing.Queue(maxsize)``."""

    _reader: Any
    _writer: Any
    _rlock: Any
    _wlock: Any
    _close: Any
    _unsent: int  # messages that are with the feeding thread

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        super().__init__(maxsize, ctx=ctx)
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._rlock, self._wlock = FileLock(), FileLock()
        self._reset()

    def _reset(self, after_fork: bool = False) -> None:
        super()._reset(after_fork)
        self._reader.writers = self._wlock
        self._unsent = 0

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Sends an object; queue.Full when there is no room for it in time. What cannot be pickled
        raises here."""
        message = self._accept(obj, block, timeout)
        with self._notempty:
            self._pass_on(message)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object; queue.Empty where none comes in time."""
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")
        end = None if timeout is None else time.monotonic() + timeout
        if not self._rlock.acquire(block, timeout):
            raise Empty
        try:
            data = self._receive(block, end)
        finally:
            self._rlock.release()
        return ForkingPickler.loads(data)

    def _receive(self, block: bool, end: float | None) -> Any:
        while True:
            left = 0 if not block else None if end is None else max(end - time.monotonic(), 0)
            if not self._poll(left):
                raise Empty
            data = self._reader.receive()
            lost, self._reader.lost = self._reader.lost, 0
            with contextlib.suppress(ValueError):  # given back by who could not send the rest
                for _ in range(lost + (data is not None)):
                    self._sem.release()
            if data is not None:
                return data

    def _accept(self, obj: Any, block: bool, timeout: float | None) -> Message:
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")
        if not self._sem.acquire(block, timeout):
            raise Full
        try:
            return Message(obj)
        except BaseException:
            self._sem.release()
            raise

    def _pass_on(self, message: Message) -> None:
        """Wants the condition's lock: messages leave in the order of their calls."""
        if self._unsent == 0 and self._wlock.acquire(False):
            try:
                if self._writer.try_send_message(message):
                    return
            finally:
                self._wlock.release()
        if self._thread is None:
            self._start_thread()
        self._unsent += 1
        self._buffer.append(message)
        self._notempty.notify()

    def _start_thread(self) -> None:
        self._buffer.clear()
        self._thread = threading.Thread(
            target=_feed, args=(weakref.ref(self), *self._parts()), name="QueueFeederThread"
        )
        self._thread.daemon = True
        self._thread.start()
        if not self._joincancelled:
            self._jointhread = Finalize(
                self._thread, _join, [weakref.ref(self._thread)], exitpriority=-5
            )
        self._close = Finalize(self, _end, [self._buffer, self._notempty], exitpriority=10)

    def _parts(self) -> tuple:
        """What the thread needs; it must not keep the queue itself alive."""
        return (
            self._buffer,
            self._notempty,
            self._reader,
            self._writer,
            self._wlock,
            self._sem,
            self._ignore_epipe,
            self._on_queue_feeder_error,
        )

    def close(self) -> None:
        """No more is put here. The thread, if there is one, closes the pipe when all is sent."""
        self._closed = True
        close, self._close = self._close, None
        if close:
            close()
        elif self._thread is None:
            _close_ends(self)

    def __del__(self) -> None:
        if getattr(self, "_thread", None) is None:  # else it closes them
            _close_ends(self)


def _close_ends(queue: Any) -> None:
    """The reading end first: the writing one then knows whether anybody can read what was sent."""
    with contextlib.suppress(AttributeError):  # of one that could not be made
        queue._reader.close()
        queue._writer.close()


def _feed(
    queue: Any,
    buffer: Any,
    notempty: Any,
    reader: Any,
    writer: Any,
    write_lock: Any,
    room: Any,
    ignore_broken_pipe: bool,
    on_error: Any,
) -> None:
    """Sends the messages in `buffer` until the end of the queue."""
    while True:
        with notempty:
            while not buffer:
                notempty.wait()
            message = buffer.popleft()
        if message is _END:
            reader.close()
            writer.close()
            return
        try:
            with write_lock:
                writer.send_message(message)
        except Exception as error:
            if ignore_broken_pipe and getattr(error, "errno", 0) == errno.EPIPE:
                return
            if is_exiting():
                info("error in queue thread: %s", error)
                return
            room.release()
            on_error(error, message)
        del message
        with notempty:
            owner = queue()
            if owner is not None:
                owner._unsent -= 1
            del owner


def _join(thread: Any) -> None:
    living = thread()
    if living is not None:
        living.join()


def _end(buffer: Any, notempty: Any) -> None:
    with notempty:
        buffer.append(_END)
        notempty.notify()


class JoinableQueue(Queue, _StandardJoinableQueue):
    """A queue whose ``join`` waits until ``task_done`` was called for everything put."""

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        message = self._accept(obj, block, timeout)
        # Without the condition's lock, which a process that is killed meanwhile would keep: join()
        # looks at the count of unfinished tasks, which grows before anybody can get this one.
        with self._notempty:
            self._unfinished_tasks.release()
            self._pass_on(message)


class SimpleQueue(_StandardSimpleQueue):
    """A pipe with locks: ``put`` waits while it is full."""

    _reader: Any
    _writer: Any

    def __init__(self, *, ctx: Any) -> None:
        super().__init__(ctx=ctx)
        self._reader.close()
        self._writer.close()
        self._reader, self._writer = Pipe(duplex=False)
        self._rlock, self._wlock = FileLock(), FileLock()
        self._poll = self._reader.poll
        self._reader.writers = self._wlock

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state)
        self._reader.writers = self._wlock

    def __del__(self) -> None:
        _close_ends(self)

    def get(self) -> Any:
        """Waits for the next object."""
        with self._rlock:
            data = self._reader.recv_bytes()
        return ForkingPickler.loads(data)

    def put(self, obj: Any) -> None:
        """Pickles and sends an object."""
        message = Message(obj)
        with self._wlock:
            self._writer.send_message(message)
