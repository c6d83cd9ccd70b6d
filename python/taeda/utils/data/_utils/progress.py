"""What a worker does now, in numbers that the trainer can read at any time."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

__all__ = [
    "EPOCH_BITS",
    "OVERFLOW",
    "RESUME",
    "Abandoned",
    "Cell",
    "Progress",
    "State",
    "name_indices",
    "stats_of",
    "where_in_batch",
]

EPOCH_BITS = 40  # a message's number is epoch << 40 | batch
RESUME, OVERFLOW = -1, -2  # numbers of messages that are no batches

_MOST_INDICES = 16  # of a batch that a message names
_STATES = ("starting", "waiting for a batch", "loading", "in collate_fn", "sending", "ended")


class Cell:
    """Indices of a channel's numbers: what the worker does now, and what it did."""

    STATE, EPOCH, BATCH, SAMPLE, SAMPLES = range(5)
    WAITED_NS, LOADED_NS, SENT_NS, BATCHES = range(5, 9)
    SLOWEST_NS = 9  # that one sample, or collating or sending one batch, has taken
    SIGNAL = 10  # that makes the worker write its stack; 0: none
    CURRENT_EPOCH = 11  # the trainer's; tasks of others are void
    TASKS_READ, RESULTS_READ = 12, 13  # messages that the worker, and the trainer, took
    PAGES_DROPPED, LOOKS_SKIPPED = 14, 15  # by _C._SharedPages
    COPIED_BYTES = 16  # of the trainer's memory, when the worker looked last


class State:
    """Values of ``Cell.STATE``."""

    STARTING, WAITING, LOADING, COLLATING, SENDING, ENDED = range(6)


class Abandoned(Exception):
    """The trainer does not want the batch any more."""


class Progress:
    """Writes down which step of which batch a worker is at, and the time of its slowest step; stops
    between samples nobody waits for."""

    def __init__(self, cells: Any) -> None:
        self.cells = cells
        self.epoch = 0
        self._step = 0  # when it began
        self._slowest = 0

    def begin_batch(self, number: int) -> int:
        """The time, in nanoseconds."""
        cells = self.cells
        self.epoch = number >> EPOCH_BITS
        cells[Cell.BATCH] = number & ((1 << EPOCH_BITS) - 1)
        cells[Cell.SAMPLE] = 0
        cells[Cell.STATE] = State.LOADING
        self._step = perf_counter_ns()
        return self._step

    def watch(self, indices: Any) -> Iterator[Any]:
        """The indices, each noted while its sample is loaded."""
        cells, epoch = self.cells, self.epoch
        for number, index in enumerate(indices):
            if cells[Cell.CURRENT_EPOCH] != epoch:
                raise Abandoned
            cells[Cell.SAMPLE] = number
            yield index
            self._end_step()

    def collating(self) -> None:
        """All samples are there."""
        self._end_step()
        self.cells[Cell.STATE] = State.COLLATING

    def loaded(self) -> int:
        """The batch is there; the time, in nanoseconds."""
        self.cells[Cell.STATE] = State.SENDING
        return self._end_step()

    def sent(self) -> int:
        """The batch is with the trainer; the time, in nanoseconds."""
        self.cells[Cell.BATCHES] += 1
        return self._end_step()

    def _end_step(self) -> int:
        now = perf_counter_ns()
        if now - self._step > self._slowest:
            self._slowest = self.cells[Cell.SLOWEST_NS] = now - self._step
        self._step = now
        return now


def where_in_batch(cells: Any, index: Any) -> str:
    """What a worker does: "loading sample 2 of batch 3 (index 17)", given the batch's indices."""
    state, batch, sample = cells[Cell.STATE], cells[Cell.BATCH], cells[Cell.SAMPLE]
    if state in (State.COLLATING, State.SENDING):
        return f"{_STATES[state]}, batch {batch}{name_indices(index)}"
    if state != State.LOADING:
        return _STATES[state]
    what = f"loading sample {sample} of batch {batch}"
    if isinstance(index, (list, tuple)):
        return what + (f" (index {index[sample]!r})" if sample < len(index) else "")
    return what if index is None else f"{what} (index {index!r})"


def name_indices(index: Any) -> str:
    """What a batch (" (indices 4, 5, 6, 7)") or sample (" (index 3)") was asked for; "" where the
    dataset is iterable."""
    if index is None or isinstance(index, range):
        return ""
    if not isinstance(index, (list, tuple)):
        return f" (index {index!r})"
    shown = ", ".join(repr(i) for i in index[:_MOST_INDICES])
    return f" (indices {shown}{', ...' if len(index) > _MOST_INDICES else ''})"


def stats_of(cells: Any, nbytes: int) -> dict[str, Any]:
    """What ``DataLoader.stats()`` says of a worker with these numbers that has sent so much."""
    return {
        "batches": cells[Cell.BATCHES],
        "bytes": nbytes,
        "waited_seconds": cells[Cell.WAITED_NS] / 1e9,
        "loading_seconds": cells[Cell.LOADED_NS] / 1e9,
        "sending_seconds": cells[Cell.SENT_NS] / 1e9,
        "slowest_step_seconds": cells[Cell.SLOWEST_NS] / 1e9,
        "pages_dropped": cells[Cell.PAGES_DROPPED],
        "sharing_skipped": cells[Cell.LOOKS_SKIPPED],
        "copied_bytes": cells[Cell.COPIED_BYTES],
    }
