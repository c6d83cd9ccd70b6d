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
from multiprocessing.reduction import DupFd
from typing import Any

from taeda import _C

__all__ = ["FileLock", "LockFile"]

_FLOCK = struct.Struct("hhqqi4x")  # of fcntl(2): type, whence, start, length, process


class LockFile:
    """An anonymous file each byte of which is a lock, whether or not the file is so long.

    A process that closes any descriptor of a file lets go of all its locks on that file: each queue
    has a file of its own, and one object of this kind in each process.

    Args:
        descriptor: of the file, which becomes the object's; a new one's by default.
        words: integers of 64 bits in the file that its users share, 0 at first.
    """

    descriptor = -1  # until there is one

    def __init__(self, words: int = 0, descriptor: int | None = None) -> None:
        if descriptor is None:
            descriptor = self.descriptor = os.memfd_create("taeda-lock", os.MFD_CLOEXEC)
            os.ftruncate(descriptor, 8 * words)
        self.descriptor = descriptor
        self._words = words
        self.words = memoryview(mmap.mmap(descriptor, 8 * words) if words else b"").cast("q")

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def __reduce__(self) -> tuple:
        # Else the descriptor would be duplicated here, and closing that would open the locks.
        multiprocessing.context.assert_spawning(self)
        return _inherited_file, (self._words, DupFd(self.descriptor))

    def allocate(self, word: int) -> None:
        """Makes sure that there is memory for a word: writing to it where there is none would be
        answered with a signal. OSError."""
        os.posix_fallocate(self.descriptor, 8 * word, 8)

    def try_lock(self, byte: int) -> bool:
        """Whether the lock was free, or this process's, and is this process's now."""
        try:
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        return True

    def is_locked(self, byte: int) -> bool:
        """Whether another living process has it."""
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, byte, 1, 0)
        found = fcntl.fcntl(self.descriptor, fcntl.F_GETLK, asked)
        return _FLOCK.unpack(found)[0] != fcntl.F_UNLCK


def _inherited_file(words: int, descriptor: Any) -> LockFile:
    return LockFile(words, descriptor.detach())


class FileLock(_C._FileLock):  # type: ignore[name-defined, misc]
    """Excludes the threads of all processes that inherit it: a byte of a file, of its own by
    default.

    A signal's handler may raise anywhere in Python code, also between a call that takes a lock and
    the next instruction. Only a ``with`` statement, of the lock or of ``held(block, timeout)``,
    gives it back whatever happens.
    """

    def __new__(cls, file: LockFile | None = None, byte: int = 0) -> FileLock:
        file = file or LockFile()
        self = super().__new__(cls, file, file.descriptor, byte)
        self._args = file, byte
        multiprocessing.util.register_after_fork(self, FileLock._forget_threads)
        return self

    def __reduce__(self) -> tuple:
        return FileLock, self._args

    def is_held(self) -> bool:
        """Whether any living process has it."""
        file, byte = self._args
        return self.is_taken_here() or file.is_locked(byte)
