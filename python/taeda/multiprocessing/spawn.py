"""spawn: a function in several processes, the first failure ends them all and is reported."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import sys
import traceback
from collections.abc import Callable
from typing import Any

__all__ = [
    "ProcessContext",
    "ProcessExitedException",
    "ProcessRaisedException",
    "spawn",
    "start_processes",
]


class ProcessException(Exception):
    """A process did not end well."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = error_pid


class ProcessRaisedException(ProcessException):
    """The function raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """The process was killed or called exit."""

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name


def _run(function: Callable, i: int, args: tuple, errors: Any) -> None:
    try:
        function(i, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        errors.put(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run together."""

    def __init__(self, processes: list, error_queues: list) -> None:
        self.processes = processes
        self.error_queues = error_queues
        self._running = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list:
        """Their process ids."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one ends; True when all have. A failure ends the others and raises."""
        if not self._running:
            return True
        ended = multiprocessing.connection.wait(list(self._running), timeout=timeout)
        failed = None
        for sentinel in ended:
            i = self._running.pop(sentinel)  # type: ignore[arg-type]
            self.processes[i].join()
            if self.processes[i].exitcode != 0 and failed is None:
                failed = i
        if failed is None:
            return not self._running
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        for process in self.processes:
            process.join(grace_period)
            if process.is_alive():
                process.kill()
                process.join()
        self._raise(failed)
        return False

    def _raise(self, i: int) -> None:
        process = self.processes[i]
        if not self.error_queues[i].empty():
            text = self.error_queues[i].get()
            raise ProcessRaisedException(
                f"\n\n-- Process {i} terminated with the following error:\n{text}", i, process.pid
            )
        if process.exitcode < 0:
            name = signal.Signals(-process.exitcode).name
            raise ProcessExitedException(
                f"process {i} terminated with signal {name}", i, process.pid, process.exitcode, name
            )
        raise ProcessExitedException(
            f"process {i} terminated with exit code {process.exitcode}",
            i,
            process.pid,
            process.exitcode,
        )


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` for i in range(nprocs), each in a process of its own.

    Args:
        join: wait for all; else the context is returned.
        start_method: 'spawn', 'fork' or 'forkserver'.
    """
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for i in range(nprocs):
        queue = context.SimpleQueue()
        process = context.Process(  # type: ignore[attr-defined]
            target=_run, args=(fn, i, args, queue), daemon=daemon
        )
        process.start()
        processes.append(process)
        errors.append(queue)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """``start_processes`` with fresh interpreters; ``fn`` must be importable."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
