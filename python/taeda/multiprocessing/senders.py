"""What each process has put into a queue and not sent yet, as long as the process lives."""

from __future__ import annotations

import os
import threading

from .file_lock import FileLock, LockFile

__all__ = ["FIRST_WORD", "MOST_WORDS", "Senders"]

FIRST_WORD = 64  # of the first process: the index of its word, and its lock's byte
MOST_WORDS = 1 << 17


class Senders:
    """A word of shared memory for each process, which has a record lock for it. The system opens
    that when the process ends, and the word counts no more.

    Args:
        file: has the words and their locks.
        used: the index of the word that says how many of them have been in use.
        lock: of all changes but those of a process's own word. Nobody waits for anything who has
            it.
    """

    def __init__(self, file: LockFile, used: int, lock: FileLock) -> None:
        self._file, self._used, self.lock = file, used, lock
        self._words = file.words
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        # The index of this process's word, what it has put and not sent; and a lock for changes.
        self.own = -1
        self.threads = threading.Lock()

    def join(self) -> int:
        """Finds a word for this process, if it has none; the messages of the process that had it
        before and was killed."""
        if self.own >= 0 and self._pid == os.getpid():
            return 0
        if self._pid != os.getpid():
            self._reset()
        with self.lock, self.threads:
            if self.own >= 0:
                return 0
            index = FIRST_WORD
            while not self._file.try_lock(index):
                index += 1
            self._file.allocate(index)
            dropped, self._words[index] = self._words[index], 0
            self._words[self._used] = max(self._words[self._used], index + 1 - FIRST_WORD)
            self.own = index
            return dropped

    def total(self) -> int:
        """Of all processes that live."""
        return sum(self._words[i] for i in self._all() if not self._is_dead(i))

    def drop_dead(self) -> int:
        """How many messages went with their processes, each counted once."""
        dropped = 0
        with self.lock:
            for index in filter(self._is_dead, self._all()):
                dropped += self._words[index]
                self._words[index] = 0
        return dropped

    def _all(self) -> range:
        return range(FIRST_WORD, FIRST_WORD + self._words[self._used])

    def _is_dead(self, index: int) -> bool:
        """Whether it is the word of a process that has ended with messages."""
        is_own = index == self.own and self._pid == os.getpid()  # a forked child has none yet
        if self._words[index] == 0 or is_own:
            return False
        return not self._file.is_locked(index)
