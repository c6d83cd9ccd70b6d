"""The locks of a queue's readers and of its writers, which a killed process does not keep.

A semaphore stays taken when the process that took it is killed, and all others wait for ever. This
is a record lock on an anonymous file, which the system takes back from the dead.
"""

from __future__ import annotations

import errno
import fcntl
import multiprocessing.context
import multiprocessing.util
import os
import struct
import threading
import time
from multiprocessing.reduction import DupFd
from typing import Any

__all__ = ["FileLock"]

_LONGEST_SLEEP = 0.01  # seconds between two tries where the system cannot wait
_FLOCK = struct.Struct("hhqqi4x")  # of fcntl(2): type, whence, start, length, process


class FileLock:
    """Excludes the threads of all processes that inherit it."""

    def __init__(self, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create("taeda-lock", os.MFD_CLOEXEC)
        self._descriptor = descriptor
        self._reset()
        multiprocessing.util.register_after_fork(self, FileLock._reset)

    def _reset(self) -> None:
        self._threads = threading.Lock()  # record locks exclude processes only

    def __del__(self) -> None:
        os.close(self._descriptor)

    def __reduce__(self) -> tuple:
        # Else the descriptor would be duplicated here, and closing that would open the lock.
        multiprocessing.context.assert_spawning(self)
        return _inherited_lock, (DupFd(self._descriptor),)

    def acquire(self, block: bool = True, timeout: float | None = None) -> bool:
        """Whether it was free in ``timeout`` seconds, at once without ``block``."""
        end = None if timeout is None else time.monotonic() + max(timeout, 0)
        left = -1 if end is None else max(timeout or 0, 0)
        if not (self._threads.acquire(timeout=left) if block else self._threads.acquire(False)):
            return False
        taken = False
        try:
            taken = self._lock_file(block, end)
        finally:
            if not taken:
                self._threads.release()
        return taken

    def _lock_file(self, block: bool, end: float | None) -> bool:
        if block and end is None:
            try:
                fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
                return True
            except OSError as error:
                # The system takes threads for their processes and sees cycles that are none.
                if error.errno != errno.EDEADLK:
                    raise
        sleep = 0.0001
        while not self._try_file():
            if not block or (end is not None and time.monotonic() >= end):
                return False
            time.sleep(sleep)
            sleep = min(2 * sleep, _LONGEST_SLEEP)
        return True

    def _try_file(self) -> bool:
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        return True

    def release(self) -> None:
        """Any thread of the process that has it may call this."""
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
        self._threads.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def is_held(self) -> bool:
        """Whether any living process has it."""
        if self._threads.locked():
            return True
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        found = fcntl.fcntl(self._descriptor, fcntl.F_GETLK, asked)
        return _FLOCK.unpack(found)[0] != fcntl.F_UNLCK


def _inherited_lock(descriptor: Any) -> FileLock:
    return FileLock(descriptor.detach())
