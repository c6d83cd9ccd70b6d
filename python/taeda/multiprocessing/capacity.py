"""How many messages are in a queue, and who may put one more, although processes are killed.

A semaphore that counts free slots loses what a killed process had taken. Here a number is
either in shared memory and means what the socket holds, or it belongs to a process that is alive:

- messages have numbers, one after the other, which their sender notes before it sends one, and its
  reader when it has got one. What lies between the two is on its way, or lost.
- what a process has put and not sent yet it counts by itself, in a word of its own, which has a
  lock. The system opens that when the process ends, and the word counts no more.

Where the queue is full, or seems to be, both are looked at again: the first message in the socket
says what has been read, and the locks which processes live.
"""

from __future__ import annotations

import math
import time
from typing import Any

from .file_lock import FileLock, LockFile
from .senders import FIRST_WORD, MOST_WORDS, Senders
from .tasks import Tasks

__all__ = ["READERS", "WRITERS", "Capacity", "Claim", "new_file"]

READERS, WRITERS = 0, 1  # bytes of the file that are a queue's locks
_PUTTERS, _TASKS, _COUNTS = 2, 3, 4
# Indices of words.
_SENT, _RECEIVED = 0, 1  # the last numbers
_LOST = 2  # messages up to this number are not in the socket any more
_TAKEN, _GIVEN_BACK = 3, 4  # slots, for the messages sent and those that will be; for such as won't
_WAITING = 5  # whether a process waits for a slot
_PROCESSES = 6  # how many processes' words have been in use; 7 to 9 are of tasks.py

_SECONDS_BETWEEN_LOOKS = 0.05  # of who waits for a slot, for what a killed process has left
_SECONDS_FOR_A_LOOK = 0.1  # that another process may take while this one must not wait


def new_file() -> LockFile:
    """The file of a queue, with its locks and numbers."""
    return LockFile(FIRST_WORD + MOST_WORDS)


class Claim:
    """What one call of ``put`` has of the capacity. A signal's handler may raise between any two
    calls: what is counted and what this says of it change with no call in between."""

    __slots__ = ("is_counted", "is_numbered", "is_passed_on", "is_task")

    def __init__(self) -> None:
        self.is_counted = False  # in its process's word
        self.is_numbered = False  # the message is in the socket, or lost
        self.is_passed_on = False  # to the thread that sends it
        self.is_task = False  # that somebody must end


class Capacity:
    """A queue's slots for ``most`` messages, any number where that is 0.

    ``writers`` is the lock that a process has while it sends, ``wakeup`` a semaphore that wakes the
    process that waits for a slot. It counts nothing, and a wake-up that a killed process did not
    give is done without after 50 ms. ``joined`` wakes those who wait for all tasks. ``reader``, the
    queue's reading end, must be set before use.
    """

    reader: Any

    def __init__(
        self, most: int, file: LockFile, writers: FileLock, wakeup: Any, joined: Any
    ) -> None:
        self._args = most, file, writers, wakeup, joined
        self._most, self._writers, self._wakeup = most, writers, wakeup
        self._words = file.words
        self._putters = FileLock(file, _PUTTERS)  # of who waits for a slot, one at a time
        self._senders = Senders(file, _PROCESSES, FileLock(file, _COUNTS))
        self.tasks = Tasks(file, FileLock(file, _TASKS), joined)

    def __reduce__(self) -> tuple:
        return Capacity, self._args

    # --- putting ---

    def acquire(self, claim: Claim, block: bool = True, timeout: float | None = None) -> bool:
        """Whether there was a slot for one message, which is this process's to send now."""
        self.tasks.drop(self._senders.join())
        if self._most == 0:
            self._count(claim)
            return True
        end = math.inf
        if not block or timeout is not None:
            end = time.monotonic() + (max(timeout or 0, 0) if block else 0)
        left = None if end == math.inf else end - time.monotonic()
        acquired = self._try_acquire(claim, end, left)
        if acquired is None and not self._words[_WAITING]:  # who has the lock has it for a moment
            acquired = self._try_acquire(claim, end, _SECONDS_FOR_A_LOOK)
        return bool(acquired)

    def _try_acquire(self, claim: Claim, end: float, seconds: float | None) -> bool | None:
        """None where another one has been waiting for so many seconds."""
        with self._putters.held(timeout=seconds) as is_taken:
            if not is_taken:
                return None
            if not self._wait_for_slot(end):
                return False
            self._count(claim)
        return True

    def _count(self, claim: Claim) -> None:
        words, senders = self._words, self._senders
        with senders.threads:
            words[senders.own] += 1
            words[_TAKEN] += 1
            claim.is_counted = True

    def _wait_for_slot(self, end: float) -> bool:
        while self._seems_full():
            left = min(end - time.monotonic(), _SECONDS_BETWEEN_LOOKS)
            if left > 0 and self._sleep(left):
                continue
            if self._look() < self._most:
                return True
            if time.monotonic() >= end:
                return False
        return True

    def _sleep(self, seconds: float) -> bool:
        """Until there may be a slot; False when nobody has said so."""
        words = self._words
        words[_WAITING] = 1
        try:
            return not self._seems_full() or self._wakeup.acquire(True, seconds)
        finally:
            words[_WAITING] = 0

    def _seems_full(self) -> bool:
        return self._taken() >= self._most

    def _taken(self) -> int:
        return self._words[_TAKEN] - self._words[_GIVEN_BACK] - self._read()

    def _read(self) -> int:
        """Messages up to this number are not in the socket any more, as far as is known."""
        return max(self._words[_RECEIVED], self._words[_LOST])

    def give_back(self, claim: Claim) -> None:
        """The message will not be sent, or its sender was interrupted."""
        if not claim.is_counted or claim.is_passed_on:
            return
        if claim.is_numbered:  # who reads the next number, or looks, knows what has become of it
            self.sent(claim)
            return
        words, senders = self._words, self._senders
        with senders.lock, senders.threads:
            words[senders.own] -= 1
            words[_GIVEN_BACK] += 1
            claim.is_counted = False
        self._wake()

    # --- sending and receiving, by who has the writers' or the readers' lock ---

    def new_number(self, claim: Claim) -> int:
        """Of the message that this process sends now."""
        self._words[_SENT] += 1
        claim.is_numbered = True
        return self._words[_SENT]

    def take_back_number(self, claim: Claim) -> None:
        """The message has not been sent, and will be later."""
        self._words[_SENT] -= 1
        claim.is_numbered = False

    def sent(self, claim: Claim) -> None:
        """The message is in the socket, or lost."""
        with self._senders.threads:
            self._words[self._senders.own] -= claim.is_counted
            claim.is_counted = False

    def received(self, number: int) -> None:
        """The message with this number is not in the socket any more."""
        self._words[_RECEIVED] = number
        self._wake()

    def _wake(self) -> None:
        if self._words[_WAITING]:
            self._words[_WAITING] = 0
            self._wakeup.release()

    # --- counting ---

    def qsize(self) -> int:
        """How many messages have been put and not been received; one that is being sent may count
        twice where there is room for any number."""
        with self._putters.held(block=False) as is_taken:
            if is_taken:
                self._look()
        if self._most > 0:
            return max(self._taken(), 0)
        return max(self._words[_SENT] + self._senders.total() - self._read(), 0)

    def is_full(self) -> bool:
        """Whether the next one that puts must wait."""
        return 0 < self._most <= self.qsize()

    def _look(self) -> int:
        """Counts anew, by who has the putters' lock; how many there are. While somebody sends, what
        was known stays."""
        words = self._words
        with self._writers.held(block=False) as is_taken, self._senders.lock:
            if is_taken:
                unsent = self._senders.total()
                sent, first = words[_SENT], self._first_in_socket()
                words[_LOST] = max(self._read(), sent if first is None else first - 1)
                words[_TAKEN], words[_GIVEN_BACK] = sent + unsent, 0
        return self._taken()

    def _first_in_socket(self) -> int | None:
        """Its number; None where there is none, 0 where that is not known."""
        try:
            return self.reader.next_number()
        except (OSError, EOFError):  # this process has closed its end
            return 0

    # --- tasks, of a JoinableQueue ---

    def wait_for_tasks(self) -> None:
        """Until none is unfinished."""
        self.tasks.wait(self._senders.drop_dead)
