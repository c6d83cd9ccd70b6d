"""The locks of a queue's readers and of its writers, which a killed process does not keep.

A semaphore stays taken when the process that took it is killed, and all others wait for ever. These
are record locks on an anonymous file, which the system takes back from the dead.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import multiprocessing.context
import multiprocessing.util
import os
import struct
import threading
import time
from multiprocessing.reduction import DupFd
from typing import Any

__all__ = ["FileLock", "LockFile"]

_LONGEST_SLEEP = 0.01  # seconds between two tries where the system cannot wait
_FLOCK = struct.Struct("hhqqi4x")  # of fcntl(2): type, whence, start, length, process


class LockFile:
    """An anonymous file each byte of which is a lock, whether or not the file is so long.

    A process that closes any descriptor of a file lets go of all its locks on that file: each queue
    has a file of its own, and one object of this kind in each process.

    Args:
        descriptor: of the file, which becomes the object's; a new one's by default.
        words: integers of 64 bits in the file that its users share, 0 at first.
    """

    def __init__(self, words: int = 0, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = os.memfd_create("taeda-lock", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, 8 * words)
        self._descriptor = descriptor
        self._words = words
        self.words = memoryview(mmap.mmap(descriptor, 8 * words) if words else b"").cast("q")

    def __del__(self) -> None:
        os.close(self._descriptor)

    def __reduce__(self) -> tuple:
        # Else the descriptor would be duplicated here, and closing that would open the locks.
        multiprocessing.context.assert_spawning(self)
        return _inherited_file, (self._words, DupFd(self._descriptor))

    def allocate(self, word: int) -> None:
        """Makes sure that there is memory for a word: writing to it where there is none would be
        answered with a signal. OSError."""
        os.posix_fallocate(self._descriptor, 8 * word, 8)

    def lock(self, byte: int, flags: int = 0) -> None:
        """Takes a byte's lock for this process: OSError where that would wait and must not."""
        fcntl.lockf(self._descriptor, fcntl.LOCK_EX | flags, 1, byte)

    def try_lock(self, byte: int) -> bool:
        """Whether the lock was free, or this process's, and is this process's now."""
        try:
            self.lock(byte, fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        return True

    def unlock(self, byte: int) -> None:
        """Gives a lock back."""
        fcntl.lockf(self._descriptor, fcntl.LOCK_UN, 1, byte)

    def is_locked(self, byte: int) -> bool:
        """Whether another living process has it."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        found = fcntl.fcntl(self._descriptor, fcntl.F_GETLK, asked)
        return _FLOCK.unpack(found)[0] != fcntl.F_UNLCK


def _inherited_file(words: int, descriptor: Any) -> LockFile:
    return LockFile(words, descriptor.detach())


class FileLock:
    """Excludes the threads of all processes that inherit it: a byte of a file, of its own by
    default."""

    def __init__(self, file: LockFile | None = None, byte: int = 0) -> None:
        self._file, self._byte = file or LockFile(), byte
        self._reset()
        multiprocessing.util.register_after_fork(self, FileLock._reset)

    def _reset(self) -> None:
        self._threads = threading.Lock()  # record locks exclude processes only

    def __reduce__(self) -> tuple:
        return FileLock, (self._file, self._byte)

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
                self._file.lock(self._byte)
                return True
            except OSError as error:
                # The system takes threads for their processes and sees cycles that are none.
                if error.errno != errno.EDEADLK:
                    raise
        sleep = 0.0001
        while not self._file.try_lock(self._byte):
            if not block or (end is not None and time.monotonic() >= end):
                return False
            time.sleep(sleep)
            sleep = min(2 * sleep, _LONGEST_SLEEP)
        return True

    def release(self) -> None:
        """Any thread of the process that has it may call this."""
        self._file.unlock(self._byte)
        self._threads.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *error: object) -> None:
        self.release()

    def is_held(self) -> bool:
        """Whether any living process has it."""
        return self._threads.locked() or self._file.is_locked(self._byte)
