"""Workers that take long: for how long each has been at the same step, and when that is too long.

A hang cannot be told from a long sample, only from what steps (a sample, collating or sending a
batch) have taken so far in any of the workers. What takes twenty times as long as the slowest is
warned of, but nothing before two seconds; and anything that takes ``HANG_WARNING_INTERVAL`` (10 s)
and three times as long as the slowest. While a worker starts, and before there is a first batch,
for which it may open files or import, the interval alone counts.
"""

from __future__ import annotations

from typing import Any

from .progress import Cell, State

__all__ = ["Watch", "longest_step"]

_LEAST_SECONDS = 2.0  # of a step that is warned of
_TIMES_SLOWEST = 20  # as long as the slowest step so far
_TIMES_SLOWEST_IN_ANY_CASE = 3  # where a step takes longer than the interval


def longest_step(slowest: float | None, interval: float) -> float:
    """Seconds that a step may take before it is warned of, where the slowest took so long; None
    where that is not known."""
    if slowest is None:
        return interval
    most = max(interval, _TIMES_SLOWEST_IN_ANY_CASE * slowest)
    return min(max(_LEAST_SECONDS, _TIMES_SLOWEST * slowest), most)


def _slowest_step(worker: Any, workers: list[Any]) -> float | None:
    """Of all workers in seconds, as far as it says something of this one."""
    if worker.cells()[Cell.STATE] == State.STARTING:
        return None
    numbers = [other.cells() for other in workers]
    known = [cells[Cell.SLOWEST_NS] / 1e9 for cells in numbers if cells[Cell.BATCHES] > 0]
    return max(known, default=None)


class Watch:
    """For how long each worker has been at the same step, since the trainer began to wait."""

    def __init__(self, workers: list[Any], now: float) -> None:
        from . import HANG_WARNING_INTERVAL

        self._workers = workers
        self.interval = HANG_WARNING_INTERVAL
        self._last: dict[int, tuple[tuple[int, int, int], float]] = {}
        self._begin = now

    @property
    def between_looks(self) -> float:
        """Seconds after which to look again."""
        return min(self.interval, _LEAST_SECONDS) / 4

    def seconds_too_long(self, i: int, now: float) -> float:
        """Since when, as far as is known, worker i is where it is; 0 while that is not long."""
        worker = self._workers[i]
        cells = worker.cells()
        sample = cells[Cell.SAMPLE] if cells[Cell.STATE] == State.LOADING else -1
        at = (cells[Cell.BATCH], sample, worker.received)
        known = self._last.get(i)
        if known is None or known[0] != at:
            self._last[i] = (at, self._begin if known is None else now)
        seconds = now - self._last[i][1]
        if seconds < min(self.interval, _LEAST_SECONDS):
            return 0.0
        longest = longest_step(_slowest_step(worker, self._workers), self.interval)
        return seconds if seconds >= longest else 0.0
