"""A pass over a DataLoader whose batches are loaded by workers, of either kind."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

from taeda._utils import ExceptionWrapper

from . import _utils
from ._iterators import is_pipe
from ._state import EpochStart, restore_epoch_start
from ._utils import at_exit
from ._utils.interrupts import InterruptsLater
from ._utils.progress import EPOCH_BITS, RESUME
from ._utils.resume import ResumeIteration, WorkerResume
from ._utils.seeds import RandomState
from ._utils.task import Task
from ._utils.worker import _IterableDatasetStopIteration
from ._waiting import Waiting

__all__ = ["WorkersIter"]

_BATCH_MASK = (1 << EPOCH_BITS) - 1


def _shard(init_fn: Any, world_size: int, rank: int, worker_id: int) -> None:
    """A pipe's ``worker_init_fn``: gives this worker, of all processes' workers, its part."""
    from .graph_settings import apply_sharding

    info = _utils.worker.get_worker_info()
    assert info is not None
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank)
    if init_fn is not None:
        init_fn(worker_id)


class WorkersIter(Waiting):
    """Gives out the workers' batches in the sampler's order. The kinds of workers derive from it;
    they start theirs (``_start``), sleep until one has a batch (``_sleep``), and end them
    (``_end_workers``)."""

    _workers: list[Any]

    def __init__(self, loader: Any, resume: dict[str, Any] | None = None) -> None:
        self._shutdown = True  # until there is something to end
        self._owner = os.getpid()
        super().__init__(loader)
        self._worker_init_fn = loader.worker_init_fn
        if is_pipe(self._dataset):
            self._worker_init_fn = functools.partial(
                _shard, self._worker_init_fn, self._world_size, self._rank
            )
        self._epoch = 0
        self._begin_epoch()
        if resume is not None:
            self._base_seed, self._shared_seed = resume["base_seed"], resume["shared_seed"]
        self._workers_seed = self._shared_seed
        self._start(loader, self._task(resume))
        if resume is not None:
            restore_epoch_start(loader, resume)
        self._reset(loader, first_iter=True, resume=resume)

    def _task(self, resume: dict[str, Any] | None) -> Task:
        states = None
        if resume is not None and resume.get("workers"):
            size = self._batch_size or 1
            states = [WorkerResume.of(state, size) for state in resume["workers"]]
        return Task(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
            self._drop_last, self._base_seed, self._worker_init_fn, self._num_workers,
            self._shared_seed, states,
        )  # fmt: skip

    def _start(self, loader: Any, task: Task) -> None:
        raise NotImplementedError

    def _reset(
        self, loader: Any, first_iter: bool = False, resume: dict[str, Any] | None = None
    ) -> None:
        self._check_owner()
        self._epoch_start = EpochStart(loader)
        if not first_iter:
            self._begin = time.perf_counter_ns()
            self._waited_ns = self._bytes = 0
        super()._reset(loader, first_iter)
        self._epoch += 1
        self._warned.clear()
        ended_workers = [not active for active in self._workers_status]
        self._begin_epoch()
        for worker, delivered, ended in zip(self._processes, self._delivered, ended_workers):
            worker.set_epoch(self._epoch)
            if not first_iter:
                self._workers_seed = self._shared_seed
                left = None if ended else (delivered.dataset,)
                worker.put(
                    RESUME,
                    ResumeIteration(self._workers_seed, self._epoch, delivered.start, left),
                )
        if resume is not None:
            self._go_on(resume)
        self._refill()

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            raise RuntimeError(
                f"DataLoader: its workers belong to process {self._owner}, which this one (pid "
                f"{os.getpid()}) was forked from in the middle of an epoch; make a new iterator"
            )

    # --- batches ---

    def _next_data(self) -> Any:
        self._check_owner()
        while True:
            waiting = self._awaited()
            if not waiting:
                if not self._persistent_workers:
                    self._shutdown_workers()
                raise StopIteration
            worker_id, number, content, nbytes = self._get_data(waiting)
            if number >> EPOCH_BITS != self._epoch:
                continue  # of an epoch that the program left
            batch = number & _BATCH_MASK
            if not self._is_awaited(batch, worker_id):
                self._fail_lost(batch, worker_id)
            self._forget(batch)
            data, random, dataset = content
            delivered = self._delivered[worker_id]
            if random is not None:
                delivered.random = RandomState(*random)
            if dataset is not None:
                delivered.dataset, delivered.ended = dataset
            if isinstance(data, _IterableDatasetStopIteration):
                self._end_worker(worker_id)
                continue
            delivered.batches += 1
            self._bytes += nbytes
            return self._process_data(data, worker_id)

    def _fail_lost(self, batch: int, worker_id: int) -> None:
        self._shutdown_workers()
        raise RuntimeError(
            f"DataLoader: worker {worker_id} sent batch {batch}, expected {self._rcvd_idx}: a "
            "batch was lost, as when an exception interrupts the reading of one"
        )

    def _process_data(self, data: Any, worker_idx: int) -> Any:
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            if issubclass(data.exc_type, StopIteration):  # which would end the pass without a word
                data.exc_type = RuntimeError
            data.reraise()
        self._warn_of_copies(worker_idx)
        return _utils.pin_memory.pin_memory(data) if self._pin_memory else data

    # --- state, stats ---

    def _state(self) -> dict[str, Any]:
        self._check_owner()
        seeds = {"base_seed": self._base_seed, "shared_seed": self._workers_seed}
        return {**super()._state(), **seeds}

    def _stats(self) -> dict[str, Any]:
        self._check_owner()
        stats = super()._stats()
        stats["workers"] = [worker.stats() for worker in self._processes]
        return stats

    # --- the end ---

    def _shutdown_workers(self) -> None:
        """Ends the workers, within five seconds; harmless when they have ended."""
        if self._shutdown or self._owner != os.getpid():
            return
        self._shutdown = True
        self._end_workers()

    def _end_workers(self) -> None:
        raise NotImplementedError

    def __del__(self) -> None:
        if self._shutdown:
            self._keep_record()
        elif self._owner == os.getpid():
            later = InterruptsLater()
            with later:
                self._shutdown_workers()
                self._keep_record()
                if later.came:  # weak references' callbacks would swallow it too
                    at_exit.forget(self)
                    self.__dict__.clear()

    def _keep_record(self) -> None:
        if hasattr(self, "_processes") and self._owner == os.getpid():
            super().__del__()
