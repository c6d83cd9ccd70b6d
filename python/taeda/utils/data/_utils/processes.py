"""Worker processes as the trainer sees them: started, asked, watched, ended."""

from __future__ import annotations

import multiprocessing.connection  # noqa: F401  # joining needs it, maybe within an import
import os
import select
import signal
import time
from typing import Any

from .link import Link
from .progress import Cell
from .task import SentTask, Task
from .trainer_end import TrainerEnd
from .worker_loop import run_worker

__all__ = ["WorkerProcess"]

_SECONDS_FOR_STACK = 1.0  # that a worker has to write it
_SECONDS_FOR_EXIT_CODE = 1.0  # of a worker that has ended: a server of forks has to send it
_UNKNOWN_EXIT_CODE = 255  # as multiprocessing says of a process that others have waited for


class WorkerProcess(TrainerEnd):
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
        super().__init__(worker_id, capacity)
        self._stack_bytes_read = 0
        self._pidfd = -1
        own.append(self._pipe)  # which a forked worker, and those after it, close
        link = Link(self._channel, event, self._workers_pipe, self._capacity, own)
        link.share_pages(pages)
        self.process = context.Process(
            target=run_worker, args=(link, SentTask(task, worker_id), os.getpid())
        )
        self.process.daemon = True
        try:
            self._start()
            self._pidfd = _open_pid(self.process)
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(self._workers_pipe)

    def _start(self) -> None:
        # An interrupt waits until a forked child is where it ends quietly (run_worker).
        is_forked = getattr(self.process, "_start_method", None) == "fork"
        waiting = {signal.SIGINT} if is_forked else set()
        self._channel.set_inherited(True)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, waiting)
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            self._channel.set_inherited(False)

    @property
    def pid(self) -> int:  # type: ignore[override]
        """The process's number."""
        return self.process.pid

    @property
    def sentinel(self) -> int:
        """A descriptor that can be read when the process has ended."""
        return self._pidfd if self._pidfd >= 0 else self.process.sentinel

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

    def end(self, deadline: float) -> None:
        """Waits until it has ended, first patiently; lets go of what there was to reach it."""
        process = self.process
        self._join(max(0.0, deadline - time.monotonic()))
        for end in (process.terminate, process.kill):
            if not self.is_alive():
                break
            end()
            self._join(0.5)
        self.retire()
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1


def _open_pid(process: Any) -> int:
    try:
        return os.pidfd_open(process.pid)
    except OSError:  # an old kernel
        return -1
