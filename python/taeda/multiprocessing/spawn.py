"""spawn: a function in several processes, the first failure ends them all and is reported."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.reduction import DupFd
from typing import Any

from taeda import _C

from .context import get_context

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_SECONDS_BEFORE_KILL = 30


class ProcessException(Exception):
    """A process did not end well."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.error_pid)


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

    def __reduce__(self) -> tuple:
        args = (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)
        return type(self), args


class _Report:
    """Where a process writes why it failed: an anonymous file, which takes a text of any length
    whether or not somebody reads it, and leaves nothing behind."""

    def __init__(self, descriptor: int | None = None) -> None:
        self._descriptor = os.memfd_create("report") if descriptor is None else descriptor

    def __del__(self) -> None:
        os.close(self._descriptor)

    def __reduce__(self) -> tuple:
        return _inherited_report, (DupFd(self._descriptor),)

    @property
    def path(self) -> str:
        """Where this process can open it while the object lives."""
        return f"/proc/self/fd/{self._descriptor}"

    def write(self, text: str) -> None:
        with open(self._descriptor, "wb", closefd=False) as file:
            file.write(text.encode(errors="backslashreplace"))

    def read(self) -> str:
        with open(self._descriptor, "rb", closefd=False) as file:
            file.seek(0)
            return file.read().decode()


def _inherited_report(descriptor: Any) -> _Report:
    return _Report(descriptor.detach())


def _run(function: Callable, i: int, args: tuple, report: _Report) -> None:
    parent: Any = multiprocessing.parent_process()
    _C._end_with_process(parent.pid)
    try:
        function(i, *args)
    except KeyboardInterrupt:
        pass  # the parent has it too
    except Exception:
        report.write(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """Processes that run together: ``processes``, of multiprocessing, in their order.

    ``error_files`` are the paths of files to which they write why they failed; empty otherwise.
    """

    def __init__(self, processes: list, reports: list) -> None:
        self.processes = processes
        self._reports = reports
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    @property
    def error_files(self) -> list[str]:
        """One of each process."""
        return [report.path for report in self._reports]

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one ends; True when all have. A failure ends the others and raises.

        Args:
            timeout: seconds to wait; False after that.
            grace_period: seconds that the others have to end by themselves after a failure, and
                once more after SIGTERM (30 by default). What still runs then is killed.

        Raises:
            ProcessRaisedException: with the traceback of the function.
            ProcessExitedException: with the exit code, or the signal's name.
        """
        if not self.sentinels:
            return True
        ended = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = self._first_failure(ended)
        if failed is None:
            return not self.sentinels
        if grace_period is not None:
            self._wait_for_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._wait_for_all(_SECONDS_BEFORE_KILL if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()
        raise self._error(failed)

    def _first_failure(self, sentinels: list) -> int | None:
        for sentinel in sentinels:
            i = self.sentinels.pop(sentinel)
            self.processes[i].join()
            if self.processes[i].exitcode != 0:
                return i
        return None

    def _wait_for_all(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _error(self, i: int) -> ProcessException:
        process = self.processes[i]
        text, code = self._reports[i].read(), process.exitcode
        if text:
            text = f"\n\n-- Process {i} terminated with the following error:\n{text}"
            return ProcessRaisedException(text, i, process.pid)
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            text = f"process {i} terminated with signal {name}"
            return ProcessExitedException(text, i, process.pid, code, name)
        text = f"process {i} terminated with exit code {code}"
        return ProcessExitedException(text, i, process.pid, code)


class SpawnContext(ProcessContext):
    """The old name of ProcessContext."""

    def __init__(self, processes: list, reports: list) -> None:
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, reports)


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` for i in range(nprocs), each in a process of its own.

    The processes end when this one does, even when it is killed.

    Args:
        join: wait for all; else the context is returned.
        start_method: 'spawn', 'fork' or 'forkserver'. The last starts them all at once if the
            environment variable TORCH_MP_PARALLEL_START is 1.

    >>> import taeda as torch
    >>> x = torch.zeros(3).share_memory_()
    >>> def fill(i, x):
    ...     x[i] = i + 1
    >>> torch.multiprocessing.start_processes(fill, (x,), nprocs=3, start_method="fork")
    >>> x
    tensor([1., 2., 3.])
    """
    context = get_context(start_method)
    reports = [_Report() for _ in range(nprocs)]
    processes = [
        context.Process(target=_run, args=(fn, i, args, report), daemon=daemon)
        for i, report in enumerate(reports)
    ]
    at_once = start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START) == "1"
    if at_once and nprocs > 0:
        with ThreadPoolExecutor(max_workers=nprocs) as executor:
            list(executor.map(lambda process: process.start(), processes))
    else:
        for process in processes:
            process.start()
    started = ProcessContext(processes, reports)
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
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
