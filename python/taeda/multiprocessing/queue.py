"""Queues between processes whose tensors share their memory.

``put`` pickles in the calling thread: what is written to a tensor afterwards, in place, is seen by
whoever gets it. A small message is sent at once if nobody is in the way; others by a thread, so
that ``put`` does not wait for a reader.
"""

from __future__ import annotations

import contextlib
import multiprocessing.queues
import os
import threading
import time
import weakref
from multiprocessing.context import assert_spawning
from multiprocessing.reduction import ForkingPickler
from multiprocessing.synchronize import SEM_VALUE_MAX  # type: ignore[attr-defined]
from multiprocessing.util import Finalize, register_after_fork
from queue import Empty, Full
from typing import Any

from . import feeder
from .capacity import READERS, WRITERS, Capacity, Claim, new_file
from .connection import Pipe
from .file_lock import FileLock, LockFile
from .reductions import Message

__all__ = ["JoinableQueue", "Queue", "SimpleQueue"]

_StandardQueue: Any = multiprocessing.queues.Queue  # whose attributes are nowhere declared
_StandardJoinableQueue: Any = multiprocessing.queues.JoinableQueue
_StandardSimpleQueue: Any = multiprocessing.queues.SimpleQueue


class Queue(_StandardQueue):
    """``multiprocessing.Queue`` for tensors; made by ``torch.multiprocessing.Queue(maxsize)``."""

    _is_joinable = False
    _reader: Any
    _writer: Any
    _rlock: Any
    _wlock: Any
    _capacity: Capacity
    _close: Any
    _mutex: threading.Lock  # of what the feeding thread works on
    _unsent: int  # messages that are with the feeding thread

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        self._maxsize = maxsize if maxsize > 0 else SEM_VALUE_MAX
        self._reader, self._writer = Pipe(duplex=False)
        file = new_file()
        self._rlock, self._wlock = FileLock(file, READERS), FileLock(file, WRITERS)
        wakeup = ctx.Semaphore(0) if maxsize > 0 else None
        joined = ctx.Semaphore(0) if self._is_joinable else None
        self._capacity = Capacity(max(maxsize, 0), file, self._wlock, wakeup, joined)
        self._opid = os.getpid()
        self._ignore_epipe = False
        self._reset()
        register_after_fork(self, Queue._after_fork)

    def __getstate__(self) -> tuple:
        assert_spawning(self)
        return (
            self._ignore_epipe, self._maxsize, self._reader, self._writer, self._rlock,
            self._wlock, self._capacity, self._opid,
        )  # fmt: skip

    def __setstate__(self, state: tuple) -> None:
        (
            self._ignore_epipe, self._maxsize, self._reader, self._writer, self._rlock,
            self._wlock, self._capacity, self._opid,
        ) = state  # fmt: skip
        self._reset()

    def _reset(self, after_fork: bool = False) -> None:
        super()._reset(after_fork)
        # A condition's own __enter__ is Python, in which a signal's handler may raise.
        self._mutex = threading.Lock()
        self._notempty = threading.Condition(self._mutex)
        self._reader.writers = self._wlock
        self._capacity.reader = self._reader
        self._unsent = 0

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Sends an object; queue.Full when no slot is free for it in time. What cannot be pickled
        raises here."""
        claim = Claim()
        try:
            message = self._accept(obj, claim, block, timeout)
            with self._mutex:
                self._pass_on(message, claim)
        finally:
            self._settle(claim)

    def _settle(self, claim: Claim) -> None:
        """When ``put`` ends, interrupted or not: the capacity is its message's, or nobody's."""
        if claim.is_passed_on:
            with self._mutex:
                self._notempty.notify()
        else:
            self._capacity.give_back(claim)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object; queue.Empty where none comes in time."""
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")
        end = None if timeout is None else time.monotonic() + timeout
        with self._rlock.held(block, timeout) as is_taken:
            if not is_taken:
                raise Empty
            data = self._receive(block, end)
        return ForkingPickler.loads(data)

    def _receive(self, block: bool, end: float | None) -> Any:
        while True:
            left = 0 if not block else None if end is None else max(end - time.monotonic(), 0)
            if not self._poll(left):
                raise Empty
            data = self._reader.receive()
            if data is not None:
                self._capacity.received(self._reader.number)
                return data

    def qsize(self) -> int:
        """How many objects were put and have not been got."""
        return self._capacity.qsize()

    def full(self) -> bool:
        """Whether there are ``maxsize`` of them."""
        return self._capacity.is_full()

    def _accept(self, obj: Any, claim: Claim, block: bool, timeout: float | None) -> Message:
        if self._closed:
            raise ValueError(f"Queue {self!r} is closed")
        if not self._capacity.acquire(claim, block, timeout):
            raise Full
        return Message(obj)

    def _pass_on(self, message: Message, claim: Claim) -> None:
        """Wants the condition's lock: messages leave in the order of their calls."""
        with self._wlock.held(block=False) as is_taken:
            if self._unsent == 0 and is_taken and self._send_now(message, claim):
                return
        if self._thread is None:
            self._start_thread()
        self._unsent += 1
        claim.is_passed_on = True
        self._buffer.append((message, claim))
        self._notempty.notify()

    def _send_now(self, message: Message, claim: Claim) -> bool:
        number = self._capacity.new_number(claim)
        if self._writer.try_send_message(message, number):
            self._capacity.sent(claim)
            return True
        self._capacity.take_back_number(claim)
        return False

    def _start_thread(self) -> None:
        self._buffer.clear()
        self._thread = threading.Thread(
            target=feeder.feed, args=(weakref.ref(self), *self._parts()), name="QueueFeederThread"
        )
        self._thread.daemon = True
        self._thread.start()
        if not self._joincancelled:
            self._jointhread = Finalize(
                self._thread, feeder.join, [weakref.ref(self._thread)], exitpriority=-5
            )
        self._close = Finalize(self, feeder.end, [self._buffer, self._notempty], exitpriority=10)

    def _parts(self) -> tuple:
        """What the thread needs; it must not keep the queue itself alive."""
        return (
            self._buffer,
            self._notempty,
            self._reader,
            self._writer,
            self._wlock,
            self._capacity,
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


class JoinableQueue(Queue, _StandardJoinableQueue):
    """A queue whose ``join`` waits until ``task_done`` was called for everything put."""

    _is_joinable = True

    def __init__(self, maxsize: int = 0, *, ctx: Any) -> None:
        Queue.__init__(self, maxsize, ctx=ctx)

    def __getstate__(self) -> tuple:
        return Queue.__getstate__(self)

    def __setstate__(self, state: tuple) -> None:
        Queue.__setstate__(self, state)

    def put(self, obj: Any, block: bool = True, timeout: float | None = None) -> None:
        """Sends an object, which is a task that is unfinished."""
        claim = Claim()
        try:
            message = self._accept(obj, claim, block, timeout)
            with self._mutex:
                self._capacity.tasks.begin(claim)  # before anybody can get it
                self._pass_on(message, claim)
        except BaseException:
            is_sent = claim.is_numbered and not claim.is_counted
            if claim.is_task and not claim.is_passed_on and not is_sent:
                self._capacity.tasks.drop(1)
            raise
        finally:
            self._settle(claim)

    def task_done(self) -> None:
        """One object that was got has been dealt with; ValueError when called more often."""
        self._capacity.tasks.end()

    def join(self) -> None:
        """Waits until all have been. Those count no more whose process is killed before it has sent
        them; those of which the getter is killed stay."""
        self._capacity.wait_for_tasks()


class SimpleQueue(_StandardSimpleQueue):
    """A pipe with locks: ``put`` waits while it is full."""

    _reader: Any
    _writer: Any

    def __init__(self, *, ctx: Any) -> None:
        self._reader, self._writer = Pipe(duplex=False)
        file = LockFile()
        self._rlock, self._wlock = FileLock(file, READERS), FileLock(file, WRITERS)
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
