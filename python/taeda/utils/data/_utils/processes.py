"""Worker processes as the trainer sees them: started, asked, watched, ended."""

from __future__ import annotations

import collections
import contextlib
import errno
import multiprocessing.connection  # noqa: F401  # joining needs it, maybe within an import
import os
import pickle
import resource
import select
import signal
import time
import traceback
import warnings
from typing import Any

from taeda import _C

from .messages import loads
from .shared_pages import inherited_pages, prefers_memory
from .worker import EPOCH_BITS, OVERFLOW, Cell, SentTask, Task, _worker_loop, where_in_batch

__all__ = ["Link", "WorkerProcess"]

_SPARE_MESSAGES = 2  # the other side's count may be seen before the room that it stands for
_SECONDS_FOR_STACK = 1.0  # that a worker has to write it
_SECONDS_FOR_EXIT_CODE = 1.0  # of a worker that has ended: a server of forks has to send it
_UNKNOWN_EXIT_CODE = 255  # as multiprocessing says of a process that others have waited for
_MOST_TRACEBACK_BYTES = 1 << 16
_SECONDS_TO_END = 3.0  # before a worker is terminated, and half a second later killed
# Of the trainer: a channel, a pipe, a pidfd and multiprocessing's two; and while processes start.
_DESCRIPTORS_A_WORKER = 5
_SPARE_DESCRIPTORS = 12


class Link:
    """A worker's end: the channel, the descriptor that wakes the trainer, a pipe to it."""

    def __init__(
        self, channel: Any, event: int, pipe: int, capacity: int, trainers: list[int]
    ) -> None:
        self._channel, self._event, self._pipe = channel, event, pipe
        self.capacity = capacity  # results that may be under way
        self._trainers = trainers  # descriptors that a forked worker has no use for
        self._pages: Any = None  # what forked workers share
        self._is_forked = True
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
        self._is_forked = False
        self._stacks = -1

    def attach(self) -> Any:
        """The channel, in the worker."""
        if self._is_forked:
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
        when it gets the signal of ``Cell.SIGNAL``."""
        import faulthandler

        try:
            file = os.open(f"/proc/self/fd/{self._channel.fileno()}", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return  # without /proc, without stacks
        os.lseek(file, self._channel.stack_offset(), os.SEEK_SET)
        self._stacks = file
        faulthandler.enable(file)
        number = signal.SIGRTMIN + 7
        if signal.getsignal(number) == signal.SIG_DFL:
            faulthandler.register(number, file, all_threads=True, chain=False)
            cells[Cell.SIGNAL] = number

    def write_traceback(self) -> None:
        """Writes that of the current exception, which ends the worker, to the same place."""
        if self._stacks < 0:
            return
        with contextlib.suppress(Exception):
            text = traceback.format_exc().encode(errors="replace")[-_MOST_TRACEBACK_BYTES:]
            os.write(self._stacks, text)


class _Overflow:
    """A message that arrives by the pipe, as far as it has come."""

    def __init__(self, head: bytes) -> None:
        self.number, self.nbytes = pickle.loads(head)
        self.data = bytearray()


class WorkerProcess:
    """A worker process and what there is to reach it."""

    def __init__(
        self,
        context: Any,
        task: Task,
        worker_id: int,
        event: int,
        capacity: int,
        own: list[int],
        pages: Any = None,
    ) -> None:
        self.id = worker_id
        self._channel = _C._WorkerChannel(capacity)  # type: ignore[attr-defined]
        self._capacity = capacity - _SPARE_MESSAGES
        self._sent = 0
        self._backlog: collections.deque = collections.deque()  # tasks there is no room for yet
        self._cells = memoryview(self._channel)
        self._cell_values: list[int] = []
        self._stack_bytes_read = 0
        self._overflow: _Overflow | None = None
        self.pipe = -1  # the descriptor by which a message arrives now; -1 while none does
        self.nbytes = 0  # of all that it has sent
        self._pipe, pipe = os.pipe()
        os.set_blocking(self._pipe, False)
        self._pidfd = -1
        own.append(self._pipe)  # which a forked worker, and those after it, close
        link = Link(self._channel, event, pipe, self._capacity, own)
        link.share_pages(pages)
        self.process = context.Process(
            target=_worker_loop, args=(link, SentTask(task, worker_id), os.getpid())
        )
        self.process.daemon = True
        self._channel.set_inherited(True)
        # An interrupt waits until a forked child is where it ends quietly (_worker_loop).
        is_forked = getattr(self.process, "_start_method", None) == "fork"
        waiting = {signal.SIGINT} if is_forked else set()
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
        try:
            try:
                self.process.start()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._pidfd = _open_pid(self.process)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            self._channel.set_inherited(False)
            os.close(pipe)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self.process.pid

    @property
    def sentinel(self) -> int:
        """A descriptor that can be read when the process has ended."""
        return self._pidfd if self._pidfd >= 0 else self.process.sentinel

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
            from taeda._utils import ExceptionWrapper

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

    def is_alive(self) -> bool:
        """Whether it has not ended. Its exit code tells that only while nobody else waits for the
        program's children."""
        return not self._has_ended(0) if self._pidfd >= 0 else self.process.is_alive()

    def _has_ended(self, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self._pidfd, select.POLLIN)
        return bool(poller.poll(seconds * 1000))

    def _join(self, seconds: float) -> None:
        if self._pidfd < 0:
            self.process.join(seconds)
        elif self._has_ended(seconds):
            self.process.join(_SECONDS_FOR_EXIT_CODE)
            popen = self.process._popen
            if popen.returncode is None:  # or multiprocessing would wait for it, or kill its number
                popen.returncode = _UNKNOWN_EXIT_CODE

    def where(self, index: Any) -> str:
        """What it does: "loading sample 2 of batch 3 (index 17)"."""
        return where_in_batch(self.cells(), index)

    def describe_death(self, index_of: Any) -> str:
        """How it ended and at what, in the words that programs look for."""
        self._join(1)
        code = self.process.exitcode
        text = f"DataLoader worker (pid(s) {self.pid}) exited unexpectedly"
        if code is not None and code < 0:
            text += (
                f"\nDataLoader worker (pid {self.pid}) is killed by signal: "
                f"{signal.strsignal(-code)}. "
            )
        elif code == _UNKNOWN_EXIT_CODE:
            text += " (its exit code is not known: the program waits for its children itself)"
        else:
            text += f" with exit code {code}"
        index = index_of(self.cells()[Cell.BATCH]) if index_of else None
        text += f"\n(worker {self.id}, {self.where(index)})"
        stack = self._channel.stack()[self._stack_bytes_read :].decode(errors="replace")
        return text + (f"\nIts last Python stack:\n{stack}" if stack else "")

    def stack(self) -> str:
        """Its Python stacks now; "" when it does not write them."""
        number = self._cells[Cell.SIGNAL]
        if number == 0 or self._pidfd < 0:
            return ""
        before = len(self._channel.stack())
        signal.pidfd_send_signal(self._pidfd, number)
        end, length = time.monotonic() + _SECONDS_FOR_STACK, before
        while time.monotonic() < end:
            time.sleep(0.02)
            last, length = length, len(self._channel.stack())
            if length == last > before:
                break
        stack = self._channel.stack()
        self._stack_bytes_read = len(stack)
        return stack[before:].decode(errors="replace")

    def close(self) -> None:
        """Tells it to end after the sample that it loads."""
        self._cells[Cell.CURRENT_EPOCH] = -1
        self._channel.close()
        os.close(self._pipe)  # wakes one that writes to it

    def end(self, deadline: float) -> None:
        """Waits until it has ended, first patiently; lets go of what there was to reach it."""
        process = self.process
        self._join(max(0.0, deadline - time.monotonic()))
        for end in (process.terminate, process.kill):
            if not self.is_alive():
                break
            end()
            self._join(0.5)
        self._cell_values = self._cells.tolist()
        self._cells.release()
        self._channel.retire()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def _open_pid(process: Any) -> int:
    try:
        return os.pidfd_open(process.pid)
    except OSError:  # an old kernel
        return -1


def check_descriptors(workers: int) -> None:
    """OSError, before anything has started, where so many workers need more than are free."""
    needed = workers * _DESCRIPTORS_A_WORKER + _SPARE_DESCRIPTORS
    found: list[int] = []
    try:
        while len(found) < needed:
            found.append(os.eventfd(0))
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        raise _too_few_descriptors(error, workers, needed, len(found)) from None
    finally:
        for descriptor in found:
            os.close(descriptor)


def _too_few_descriptors(error: OSError, workers: int, needed: int, free: int) -> OSError:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return OSError(
        error.errno,
        f"DataLoader: too few file descriptors to start {workers} workers: they need about "
        f"{needed}, and {free} are free ({error.strerror}; the limit of this process, "
        f"RLIMIT_NOFILE, is {soft}, which it may raise to {hard}). Raise the limit "
        "(resource.setrlimit, or ulimit -n in the shell), close files, use fewer workers, or "
        'multiprocessing_context="thread", which needs none',
    )


def start_workers(context: Any, task: Task, event: int, capacity: int) -> list[WorkerProcess]:
    """A worker process for each number; ends those that started where one cannot."""
    workers: list[WorkerProcess] = []
    own: list[int] = []
    try:
        with inherited_pages(context, task.num_workers) as pages:
            for i in range(task.num_workers):
                workers.append(WorkerProcess(context, task, i, event, capacity, own, pages))
    except BaseException as error:
        end_workers(workers)
        if isinstance(error, (TypeError, AttributeError, pickle.PicklingError)):
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. This might be because "
                "the worker Process arguments are not picklable. Python 3.14+ changed the "
                "multiprocessing start method in non-Mac POSIX platforms to 'forkserver', which "
                "requires the worker Process arguments to be picklable. You can also try "
                "multiprocessing.set_start_method('fork').",
                stacklevel=5,
            )
        raise
    return workers


def end_workers(workers: list[WorkerProcess]) -> None:
    """Ends all of them, within five seconds."""
    for worker in workers:
        worker.close()
    deadline = time.monotonic() + _SECONDS_TO_END
    for worker in workers:
        worker.end(deadline)
