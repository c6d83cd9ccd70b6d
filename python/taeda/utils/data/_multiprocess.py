"""A pass over a DataLoader whose batches are loaded by worker processes or threads."""

from __future__ import annotations

import functools
import itertools
import os
import select
import signal
import threading
import time
import warnings
import weakref
from typing import Any

from taeda import _C
from taeda._utils import ExceptionWrapper

from . import _utils
from ._iterators import _BaseDataLoaderIter, _DatasetKind, is_pipe, warn_of_reading
from ._state import EpochStart, restore_epoch_start
from ._utils.processes import check_descriptors, end_workers, start_workers
from ._utils.seeds import RandomState
from ._utils.worker import (
    EPOCH_BITS,
    RESUME,
    Cell,
    State,
    Task,
    _IterableDatasetStopIteration,
    _ResumeIteration,
    has_state,
)

__all__ = ["_MultiProcessingDataLoaderIter"]

_MOST_TASKS = 1 << 15  # under way at a time, however large prefetch_factor is
_SECONDS_TO_LOOK_FOR_ROOM = 0.01  # for tasks, while a worker drops those of other epochs
_SECONDS_TO_LOOK_FOR_DEATH = 0.001  # of a worker that has closed its pipe
_BATCH_MASK = (1 << EPOCH_BITS) - 1


class WorkerResume:
    """What a worker goes on from: samples read, random numbers then and when the epoch began."""

    def __init__(
        self,
        samples: int,
        random: RandomState | None,
        dataset: Any,
        start: RandomState | None = None,
        ended: bool = False,
    ) -> None:
        self.samples, self.random, self.dataset, self.start = samples, random, dataset, start
        self.ended = ended


def _state_or_none(values: Any) -> RandomState | None:
    return None if values is None else RandomState(*values)


class _Delivered:
    """What the batches of one worker that the program has got left behind.

    Random states are None until the worker has given a batch: they follow from its seed then.
    """

    def __init__(self, start: RandomState | None = None, dataset: Any = None) -> None:
        self.batches = 0
        self.random = self.start = start
        self.dataset = dataset  # the state of an iterable dataset that has one
        self.ended = False  # whether an iterable dataset with a state has

    def state(self) -> dict[str, Any]:
        """Plain values."""
        random, start = (None if x is None else tuple(x) for x in (self.random, self.start))
        return {
            "batches": self.batches, "random": random, "start": start, "dataset": self.dataset,
            "ended": self.ended,
        }  # fmt: skip

    def restore(self, state: dict[str, Any]) -> None:
        """Becomes what :meth:`state` was taken of."""
        self.batches, self.dataset = state["batches"], state["dataset"]
        self.random = _state_or_none(state["random"])
        self.start = _state_or_none(state.get("start"))
        self.ended = state.get("ended", False)


def _shard(init_fn: Any, world_size: int, rank: int, worker_id: int) -> None:
    """A pipe's ``worker_init_fn``: gives this worker, of all processes' workers, its part."""
    from .graph_settings import apply_sharding

    info = _utils.worker.get_worker_info()
    assert info is not None
    apply_sharding(info.dataset, info.num_workers * world_size, worker_id * world_size + rank)
    if init_fn is not None:
        init_fn(worker_id)


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Hands the sampler's indices to workers in turn, and their batches on in that order."""

    _workers: list[Any]
    _processes: list[Any]

    def __init__(self, loader: Any, resume: dict[str, Any] | None = None) -> None:
        self._shutdown = True  # until there is something to end
        self._owner = os.getpid()
        super().__init__(loader)
        self._prefetch_factor = loader.prefetch_factor
        self._in_order = loader.in_order
        self._most_tasks = min(self._num_workers * (self._prefetch_factor or 0), _MOST_TASKS)
        for name in ("num_workers", "prefetch_factor"):
            if (getattr(loader, name) or 0) <= 0:
                raise AssertionError(
                    f"{name} must be greater than 0 for MultiProcessingDataLoaderIter"
                )
        self._worker_init_fn = loader.worker_init_fn
        if is_pipe(self._dataset):
            self._worker_init_fn = functools.partial(
                _shard, self._worker_init_fn, self._world_size, self._rank
            )
        self._epoch = 0
        self._given: dict[int, Any] = {}
        self._delivered = [_Delivered() for _ in range(self._num_workers)]
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
            states = []
            for worker in resume["workers"]:
                states.append(
                    WorkerResume(
                        worker["batches"] * (self._batch_size or 1),
                        _state_or_none(worker["random"]),
                        worker["dataset"],
                        _state_or_none(worker.get("start")),
                        worker.get("ended", False),
                    )
                )
        return Task(
            self._dataset_kind, self._dataset, self._auto_collation, self._collate_fn,
            self._drop_last, self._base_seed, self._worker_init_fn, self._num_workers,
            self._shared_seed, states,
        )  # fmt: skip

    # --- workers ---

    def _start(self, loader: Any, task: Task) -> None:
        context = worker_context(loader)
        check_descriptors(self._num_workers)
        self._event = _C._WorkerChannel.event()  # type: ignore[attr-defined]
        try:
            self._processes = start_workers(context, task, self._event, self._most_tasks + 8)
        except BaseException:
            os.close(self._event)
            raise
        self._shutdown = False
        self._workers = [worker.process for worker in self._processes]
        self._poller = select.poll()
        self._poller.register(self._event, select.POLLIN)
        for worker in self._processes:
            self._poller.register(worker.sentinel, select.POLLIN)
        end_at_exit(self)

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
        self._delivered = [_Delivered(last.random, last.dataset) for last in self._delivered]
        self._warned: set[int] = set()  # workers: one warning a pass, however slow the samples

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
        ended_workers = [not active for active in self._workers_status]
        self._begin_epoch()
        for worker, delivered, ended in zip(self._processes, self._delivered, ended_workers):
            worker.set_epoch(self._epoch)
            if not first_iter:
                self._workers_seed = self._shared_seed
                left = None if ended else (delivered.dataset,)
                worker.put(
                    RESUME,
                    _ResumeIteration(self._workers_seed, self._epoch, delivered.start, left),
                )
        if resume is not None:
            self._go_on(resume)
        self._refill()

    def _go_on(self, resume: dict[str, Any]) -> None:
        """Asks again for what was under way; what was given out before is not loaded again."""
        self._num_yielded = resume["batches"]
        if self._dataset_kind == _DatasetKind.Iterable and not has_state(self._dataset):
            warn_of_reading(self._dataset, self._num_yielded * (self._batch_size or 1))
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

    # --- batches ---

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

    def _check_owner(self) -> None:
        if self._owner != os.getpid():
            raise RuntimeError(
                f"DataLoader: its workers belong to process {self._owner}, which this one (pid "
                f"{os.getpid()}) was forked from in the middle of an epoch; make a new iterator"
            )

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
            self._check_is_awaited(batch, worker_id)
            self._forget(batch)
            data, random, dataset = content
            delivered = self._delivered[worker_id]
            if random is not None:
                delivered.random = RandomState(*random)
            if dataset is not None:
                delivered.dataset, delivered.ended = dataset
            if isinstance(data, _IterableDatasetStopIteration):
                self._workers_status[worker_id] = False
                for other in [b for b, (w,) in self._task_info.items() if w == worker_id]:
                    self._forget(other)
                self._refill()
                continue
            delivered.batches += 1
            self._bytes += nbytes
            return self._process_data(data, worker_id)

    def _check_is_awaited(self, batch: int, worker_id: int) -> None:
        known = self._task_info.get(batch) == (worker_id,)
        if not known or (self._in_order and batch != self._rcvd_idx):
            self._shutdown_workers()
            raise RuntimeError(
                f"DataLoader: worker {worker_id} sent batch {batch}, expected {self._rcvd_idx}: a "
                "batch was lost, as when an exception interrupts the reading of one"
            )

    def _awaited(self) -> list[int]:
        """The workers of which one has the next batch; none at the end."""
        while self._rcvd_idx < self._send_idx and self._rcvd_idx not in self._task_info:
            self._rcvd_idx += 1
        if self._rcvd_idx == self._send_idx:
            return []
        if self._in_order:
            return [self._task_info[self._rcvd_idx][0]]
        return sorted({worker for (worker,) in self._task_info.values()})

    def _forget(self, batch: int) -> None:
        (worker_id,) = self._task_info.pop(batch)
        del self._indices[batch]
        self._workers_num_tasks[worker_id] -= 1
        self._tasks_outstanding -= 1

    def _refill(self) -> None:
        """Keeps as many batches under way as there should be."""
        for _ in range(self._most_tasks - self._tasks_outstanding):
            self._try_put_index()

    def _process_data(self, data: Any, worker_idx: int) -> Any:
        self._try_put_index()
        if isinstance(data, ExceptionWrapper):
            if issubclass(data.exc_type, StopIteration):  # which would end the pass without a word
                data.exc_type = RuntimeError
            data.reraise()
        return _utils.pin_memory.pin_memory(data) if self._pin_memory else data

    # --- waiting ---

    def _get_data(self, waiting: list[int]) -> tuple[int, int, Any, int]:
        """(worker, number, content, bytes) of the next message of one of these workers."""
        begin = time.monotonic()
        watch = _Watch(begin)
        while True:
            if self._shutdown:
                raise RuntimeError("DataLoader: its workers have ended")
            for worker_id in waiting:
                message = self._processes[worker_id].get()
                if message is not None:
                    return worker_id, *message
            now = time.monotonic()
            if self._timeout > 0 and now - begin >= self._timeout:
                self._fail_timeout(waiting)
            self._warn_of_hangs(waiting, watch, now)
            left = self._timeout - (now - begin) if self._timeout > 0 else watch.interval
            self._sleep(waiting, min(left, watch.interval / 4))

    def _sleep(self, waiting: list[int], seconds: float) -> None:
        """Until one of the workers has a message, or any has ended."""
        if not all([worker.flush() for worker in self._processes]):
            seconds = _SECONDS_TO_LOOK_FOR_ROOM
        workers = [self._processes[i] for i in waiting]
        pipes = [worker.pipe for worker in workers if worker.pipe >= 0]
        channels = [worker.channel for worker in workers if worker.pipe < 0]
        for channel in channels:
            channel.arm(True)
        for pipe in pipes:
            self._poller.register(pipe, select.POLLIN)
        try:
            if any(channel.has_message() for channel in channels):
                return
            events = self._poller.poll(max(1, seconds * 1000))
        finally:
            for channel in channels:
                channel.arm(False)
            for pipe in pipes:
                self._poller.unregister(pipe)
        if len(events) == 1 and events[0][0] == self._event:
            os.read(self._event, 8)
        elif events and not any(fd in pipes and event & select.POLLIN for fd, event in events):
            self._look_for_deaths(waiting)
            if pipes:
                time.sleep(_SECONDS_TO_LOOK_FOR_DEATH)

    def _look_for_deaths(self, waiting: list[int]) -> None:
        if any(self._processes[i].channel.has_message() for i in waiting):
            return  # what it sent before it died comes first
        for worker in self._processes:
            if not worker.is_alive():
                text = worker.describe_death(self._indices.get)
                self._shutdown_workers()
                raise RuntimeError(text) from None

    def _fail_timeout(self, waiting: list[int]) -> None:
        text = f"DataLoader timed out after {self._timeout} seconds"
        for i in waiting:
            worker = self._processes[i]
            index = self._indices.get(worker.cells()[Cell.BATCH])
            text += f"\n(worker {i} (pid {worker.pid}), {worker.where(index)})"
            stack = worker.stack()
            text += f"\nIts Python stack:\n{stack}" if stack else ""
        raise RuntimeError(text)

    def _warn_of_hangs(self, waiting: list[int], watch: _Watch, now: float) -> None:
        for i in waiting:
            worker = self._processes[i]
            seconds = watch.seconds_unchanged(i, worker, now)
            if seconds < watch.interval or i in self._warned:
                continue
            self._warned.add(i)
            index = self._indices.get(worker.cells()[Cell.BATCH])
            stack = worker.stack()
            warnings.warn(
                f"DataLoader worker {i} (pid {worker.pid}) has been {worker.where(index)} for "
                f"{seconds:.0f} seconds" + (f"; its Python stack:\n{stack}" if stack else ""),
                stacklevel=5,
            )

    # --- state, stats ---

    def _state(self) -> dict[str, Any]:
        self._check_owner()
        return {
            **super()._state(),
            "base_seed": self._base_seed,
            "shared_seed": self._workers_seed,
            "received": self._rcvd_idx,
            "sent": self._send_idx,
            "pending": [(batch, worker) for batch, (worker,) in sorted(self._task_info.items())],
            "active": list(self._workers_status),
            "next_worker": self._next_worker,
            "workers": [delivered.state() for delivered in self._delivered],
        }

    def _stats(self) -> dict[str, Any]:
        self._check_owner()
        stats = super()._stats()
        for worker in self._processes:
            cells = worker.cells()
            stats["workers"].append(
                {
                    "id": worker.id,
                    "pid": worker.pid,
                    "batches": cells[Cell.BATCHES],
                    "bytes": worker.nbytes,
                    "waited_seconds": cells[Cell.WAITED_NS] / 1e9,
                    "loading_seconds": cells[Cell.LOADED_NS] / 1e9,
                    "sending_seconds": cells[Cell.SENT_NS] / 1e9,
                    "pages_dropped": cells[Cell.PAGES_DROPPED],
                    "sharing_skipped": cells[Cell.LOOKS_SKIPPED],
                }
            )
        return stats

    # --- the end ---

    def _shutdown_workers(self) -> None:
        """Ends the workers, within five seconds; harmless when they have ended."""
        if self._shutdown or self._owner != os.getpid():
            return
        self._shutdown = True
        try:
            end_workers(self._processes)
        finally:
            self._close_event()

    def _close_event(self) -> None:
        os.close(self._event)

    def __del__(self) -> None:
        if self._shutdown:
            self._keep_record()
        elif self._owner == os.getpid():
            later = _InterruptsLater()
            with later:
                self._shutdown_workers()
                self._keep_record()
                if later.came:  # weak references' callbacks would swallow it too
                    _living.discard(self)
                    self.__dict__.clear()

    def _keep_record(self) -> None:
        if hasattr(self, "_processes") and self._owner == os.getpid():
            super().__del__()


class _InterruptsLater:
    """Keeps Ctrl-C, whose exception a destructor would swallow, until that has returned."""

    def __enter__(self) -> None:
        self.came: Any = None
        self._handler: Any = None
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._handler = signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: Any) -> None:
        self.came = _C._interrupt_when_dropped()  # type: ignore[attr-defined]

    def __exit__(self, *exc: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)


class _Watch:
    """For how long each worker has been at the same sample."""

    def __init__(self, now: float) -> None:
        self.interval = _utils.HANG_WARNING_INTERVAL
        self.last: dict[int, tuple[tuple[int, int, int], float]] = {}
        self._begin = now

    def seconds_unchanged(self, i: int, worker: Any, now: float) -> float:
        """Since when, as far as is known, worker i is where it is."""
        cells = worker.cells()
        sample = cells[Cell.SAMPLE] if cells[Cell.STATE] == State.LOADING else -1
        at = (cells[Cell.BATCH], sample, worker.received)
        known = self.last.get(i)
        if known is None or known[0] != at:
            self.last[i] = (at, self._begin if known is None else now)
        return now - self.last[i][1]


def worker_context(loader: Any) -> Any:
    """The multiprocessing context of a loader, its server of forks told what to load."""
    import multiprocessing

    context = loader.multiprocessing_context
    if context is None:
        context = multiprocessing.get_context()
    if getattr(context, "get_start_method", lambda: "")() == "forkserver":
        preload_forkserver()
    return context


def preload_forkserver() -> None:
    """Has multiprocessing's fork server import what workers need, once for all of them."""
    from multiprocessing import forkserver

    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if server._forkserver_pid is None:
        known = server._preload_modules
        names = ["taeda.utils.data._utils.processes", "taeda.utils.data.dataloader"]
        server.set_forkserver_preload([*known, *(name for name in names if name not in known)])


_living: weakref.WeakSet[_MultiProcessingDataLoaderIter] = weakref.WeakSet()


@functools.cache
def _register_at_exit() -> None:
    import atexit
    import multiprocessing.util  # noqa: F401  # whose own handler must run after this one

    atexit.register(_end_all)


def _end_all() -> None:
    for iterator in list(_living):
        iterator._shutdown_workers()


def end_at_exit(iterator: _MultiProcessingDataLoaderIter) -> None:
    """Ends its workers before the interpreter goes."""
    _register_at_exit()
    _living.add(iterator)
