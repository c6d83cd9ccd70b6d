"""The workers of a pass, started and ended together."""

from __future__ import annotations

import errno
import os
import pickle
import resource
import time
import warnings
from typing import Any

from .processes import WorkerProcess
from .shared_pages import inherited_pages
from .task import Task

__all__ = ["check_descriptors", "end_workers", "start_workers"]

_SECONDS_TO_END = 3.0  # before a worker is terminated, and half a second later killed
# Of the trainer: a channel, a pipe, a pidfd and multiprocessing's two; and while processes start.
_DESCRIPTORS_A_WORKER = 5
_SPARE_DESCRIPTORS = 12


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
        with inherited_pages(context) as pages:
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


def end_workers(workers: list[Any]) -> None:
    """Ends all of them, within five seconds."""
    for worker in workers:
        worker.close()
    deadline = time.monotonic() + _SECONDS_TO_END
    for worker in workers:
        worker.end(deadline)
