"""Which worker loads which batch of a pass."""

from __future__ import annotations

import itertools
from typing import Any

from ._iterators import _BaseDataLoaderIter, _DatasetKind, warn_of_reading
from ._utils.progress import EPOCH_BITS
from ._utils.resume import Delivered, has_state

__all__ = ["Schedule"]

_MOST_TASKS = 1 << 15  # under way at a time, however large prefetch_factor is


class Schedule(_BaseDataLoaderIter):
    """A pass that hands the sampler's indices to workers in turn, and remembers who has which."""

    _processes: list[Any]
    _epoch: int  # its number, among those of the same workers

    def __init__(self, loader: Any) -> None:
        super().__init__(loader)
        for name in ("num_workers", "prefetch_factor"):
            if (getattr(loader, name) or 0) <= 0:
                raise AssertionError(
                    f"{name} must be greater than 0 for MultiProcessingDataLoaderIter"
                )
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._most_tasks = min(self._num_workers * self._prefetch_factor, _MOST_TASKS)
        self._delivered = [Delivered() for _ in range(self._num_workers)]

    def _begin_epoch(self) -> None:
        self._send_idx = 0  # of the next batch to ask for
        self._rcvd_idx = 0  # of the next batch to give out
        self._task_info: dict[int, tuple] = {}  # of batches under way: the worker
        self._indices: dict[int, Any] = {}  # and what it was asked for
        self._tasks_outstanding = 0
        self._workers_status = [True] * self._num_workers  # whether it has more in this epoch
        self._workers_num_tasks = [0] * self._num_workers
        self._worker_queue_idx_cycle = itertools.cycle(range(self._num_workers))
        self._next_worker = 0
        self._delivered = [Delivered(last.random, last.dataset) for last in self._delivered]

    def _try_put_index(self) -> None:
        """Asks the next worker for the next batch, where there are both."""
        try:
            index = self._next_index()
        except StopIteration:
            return
        worker_id = self._choose_worker()
        if worker_id is not None:
            self._put(worker_id, index)
            self._send_idx += 1

    def _choose_worker(self) -> int | None:
        most = self._most_tasks // max(1, sum(self._workers_status))
        for _ in range(self._num_workers):
            worker_id = next(self._worker_queue_idx_cycle)
            self._next_worker = (worker_id + 1) % self._num_workers
            if self._workers_status[worker_id] and (
                self._in_order or self._workers_num_tasks[worker_id] < most
            ):
                return worker_id
        return None

    def _put(self, worker_id: int, index: Any) -> None:
        self._task_info[self._send_idx] = (worker_id,)
        self._indices[self._send_idx] = index
        self._workers_num_tasks[worker_id] += 1
        self._tasks_outstanding += 1
        self._processes[worker_id].put(self._epoch << EPOCH_BITS | self._send_idx, index)

    def _awaited(self) -> list[int]:
        """The workers of which one has the next batch; none at the end."""
        while self._rcvd_idx < self._send_idx and self._rcvd_idx not in self._task_info:
            self._rcvd_idx += 1
        if self._rcvd_idx == self._send_idx:
            return []
        if self._in_order:
            return [self._task_info[self._rcvd_idx][0]]
        return sorted({worker for (worker,) in self._task_info.values()})

    def _is_awaited(self, batch: int, worker_id: int) -> bool:
        known = self._task_info.get(batch) == (worker_id,)
        return known and (not self._in_order or batch == self._rcvd_idx)

    def _forget(self, batch: int) -> None:
        (worker_id,) = self._task_info.pop(batch)
        del self._indices[batch]
        self._workers_num_tasks[worker_id] -= 1
        self._tasks_outstanding -= 1

    def _end_worker(self, worker_id: int) -> None:
        """Its part of an iterable dataset has ended."""
        self._workers_status[worker_id] = False
        for other in [b for b, (w,) in self._task_info.items() if w == worker_id]:
            self._forget(other)
        self._refill()

    def _refill(self) -> None:
        """Keeps as many batches under way as there should be."""
        for _ in range(self._most_tasks - self._tasks_outstanding):
            self._try_put_index()

    # --- going on after an interruption ---

    def _go_on(self, resume: dict[str, Any]) -> None:
        """Asks again for what was under way; what was given out before is not loaded again."""
        self._num_yielded = resume["batches"]
        if self._dataset_kind == _DatasetKind.Iterable and not has_state(self._dataset):
            warn_of_reading(self._dataset, self._num_yielded * (self._batch_size or 1), 7)
        self._rcvd_idx = resume["received"]
        self._workers_status = list(resume["active"])
        pending = dict(resume["pending"])
        for delivered, state in zip(self._delivered, resume["workers"]):
            delivered.restore(state)
        first = min(pending, default=resume["sent"])
        self._skip_indices(first)
        for self._send_idx in range(first, resume["sent"]):
            index = self._next_index()
            if self._send_idx in pending:
                self._put(pending[self._send_idx], index)
        self._send_idx = resume["sent"]
        for _ in range(resume["next_worker"]):
            next(self._worker_queue_idx_cycle)
        self._next_worker = resume["next_worker"]

    def _state(self) -> dict[str, Any]:
        return {
            **super()._state(),
            "received": self._rcvd_idx,
            "sent": self._send_idx,
            "pending": [(batch, worker) for batch, (worker,) in sorted(self._task_info.items())],
            "active": list(self._workers_status),
            "next_worker": self._next_worker,
            "workers": [delivered.state() for delivered in self._delivered],
        }
