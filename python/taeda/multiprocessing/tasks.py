"""The unfinished tasks of a JoinableQueue, which no process that is killed keeps from changing."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from .file_lock import FileLock, LockFile

__all__ = ["Tasks"]

_LONGEST_SLEEP = 0.01  # seconds
_SECONDS_BETWEEN_LOOKS = 0.05  # of who waits, at processes that were killed


class Tasks:
    """A count in shared memory; ``unfinished`` and ``dropped`` are the indices of its words, and
    ``byte`` is its lock."""

    def __init__(self, file: LockFile, unfinished: int, dropped: int, byte: int) -> None:
        self._words, self._unfinished, self._dropped = file.words, unfinished, dropped
        self._lock = FileLock(file, byte)

    def begin(self, claim: Any) -> None:
        """One more is unfinished, as the claim (room.py) says from now on."""
        with self._lock:
            self._words[self._unfinished] += 1
            claim.is_task = True

    def end(self) -> None:
        """One less; ValueError where there is none."""
        words = self._words
        with self._lock:
            if words[self._unfinished] > 0:
                words[self._unfinished] -= 1
            elif words[self._dropped] > 0:
                words[self._dropped] -= 1  # its process was killed when it had just sent it
            else:
                raise ValueError("task_done() called too many times")

    def drop(self, n: int) -> None:
        """So many will never be got, since their process was killed before it had sent them."""
        words = self._words
        if n > 0:
            with self._lock:
                n = min(n, words[self._unfinished])
                words[self._unfinished] -= n
                words[self._dropped] += n

    def wait(self, drop_dead: Callable[[], int]) -> None:
        """Until none is unfinished. ``drop_dead`` says how many went with their processes."""
        sleep, look = 0.0001, time.monotonic() + _SECONDS_BETWEEN_LOOKS
        while self._words[self._unfinished] > 0:
            time.sleep(sleep)
            sleep = min(2 * sleep, _LONGEST_SLEEP)
            if time.monotonic() >= look:
                self.drop(drop_dead())
                look = time.monotonic() + _SECONDS_BETWEEN_LOOKS
