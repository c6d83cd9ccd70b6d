"""The unfinished tasks of a JoinableQueue, which no process that is killed keeps from changing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .file_lock import FileLock, LockFile

__all__ = ["Tasks"]

# Indices of words: the tasks; those whose processes were killed; who waits for all of them.
_UNFINISHED, _DROPPED, _JOINING = 7, 8, 9
_SECONDS_BETWEEN_LOOKS = 0.05  # of who waits, at processes that were killed


class Tasks:
    """A count in shared memory, with its lock, and a semaphore that wakes those who wait until it
    is 0. That counts nothing: a wake-up that a killed process did not give is done without after
    50 ms, and one that a killed process did not take is one too many."""

    def __init__(self, file: LockFile, lock: FileLock, wakeup: Any) -> None:
        self._words, self._lock, self._wakeup = file.words, lock, wakeup

    def begin(self, claim: Any) -> None:
        """One more is unfinished, as the claim (capacity.py) says from now on."""
        with self._lock:
            self._words[_UNFINISHED] += 1
            claim.is_task = True

    def end(self) -> None:
        """One less; ValueError where there is none."""
        words = self._words
        with self._lock:
            if words[_UNFINISHED] > 0:
                words[_UNFINISHED] -= 1
                self._wake()
            elif words[_DROPPED] > 0:
                words[_DROPPED] -= 1  # its process was killed when it had just sent it
            else:
                raise ValueError("task_done() called too many times")

    def drop(self, n: int) -> None:
        """So many will never be got, since their process was killed before it had sent them."""
        words = self._words
        if n > 0:
            with self._lock:
                n = min(n, words[_UNFINISHED])
                words[_UNFINISHED] -= n
                words[_DROPPED] += n
                self._wake()

    def _wake(self) -> None:
        words = self._words
        while words[_UNFINISHED] == 0 < words[_JOINING]:
            words[_JOINING] -= 1
            self._wakeup.release()

    def wait(self, drop_dead: Callable[[], int]) -> None:
        """Until none is unfinished. ``drop_dead`` says how many went with their processes."""
        words = self._words
        while words[_UNFINISHED] > 0:
            with self._lock:
                words[_JOINING] += words[_UNFINISHED] > 0
            if not self._wakeup.acquire(True, _SECONDS_BETWEEN_LOOKS):
                with self._lock:
                    words[_JOINING] = max(words[_JOINING] - 1, 0)
                self.drop(drop_dead())
