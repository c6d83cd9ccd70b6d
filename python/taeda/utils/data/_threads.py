"""A pass over a DataLoader whose workers are threads of this process.

Nothing is copied or pickled, and a worker sees the dataset itself. Samples that spend their time
without the GIL (files, NumPy, decoders, any on free-threaded Python) are loaded at the same time.
"""

from __future__ import annotations

import collections
import collections.abc
import queue
import random
import sys
import threading
import time
import traceback
from typing import Any

import taeda
from taeda._utils import ExceptionWrapper

from ._utils.at_exit import end_at_exit
from ._utils.progress import (
    EPOCH_BITS,
    RESUME,
    Abandoned,
    Cell,
    Progress,
    State,
    stats_of,
    where_in_batch,
)
from ._utils.resume import ResumeIteration, go_back
from ._utils.seeds import RandomState, state_tensor
from ._utils.start import end_workers
from ._utils.task import Task, fetch, make_dataset, make_fetcher, state_of_dataset
from ._utils.worker import _RNG, WorkerInfo, _IterableDatasetStopIteration, _ThreadInfo
from ._workers import WorkersIter

__all__ = ["_MultiThreadingDataLoaderIter"]

_SECONDS_TO_END = 3.0  # that a thread gets for its sample; one that takes longer is left behind


def _make_rng(seed: int) -> _RNG:
    generator = taeda.Generator()
    generator.manual_seed(seed)
    numpy = sys.modules.get("numpy")
    own = numpy.random.default_rng(seed) if numpy is not None else None
    return _RNG(random.Random(seed), generator, own)


def _rng_state(rng: _RNG) -> RandomState:
    numpy = rng.numpy_generator
    return RandomState(
        rng.random_generator.getstate(),
        bytes(rng.torch_generator.get_state().untyped_storage()),
        None if numpy is None else numpy.bit_generator.state,
    )


def _restore(rng: _RNG, state: RandomState) -> None:
    rng.random_generator.setstate(state.python)
    rng.torch_generator.set_state(state_tensor(state.taeda))
    if rng.numpy_generator is not None and state.numpy is not None:
        rng.numpy_generator.bit_generator.state = state.numpy


def bytes_of(data: Any) -> int:
    """What the tensors, arrays and texts of a batch take, as they would travel; 0 where objects do
    not say."""
    try:
        return _bytes_of(data)
    except Exception:  # of an attribute, or too many lists in each other
        return 0


def _bytes_of(data: Any) -> int:
    if isinstance(data, taeda.Tensor):
        return data.numel() * data.element_size()
    if isinstance(data, (str, bytes, bytearray)):
        return len(data)
    if isinstance(data, collections.abc.Mapping):
        return sum(map(_bytes_of, data.values()))
    if isinstance(data, (list, tuple)):
        return sum(map(_bytes_of, data))
    nbytes = getattr(data, "nbytes", 0)
    return nbytes if isinstance(nbytes, int) else 0


class ThreadWorker:
    """A worker thread, with the methods of ``WorkerProcess``."""

    def __init__(self, task: Task, worker_id: int, ready: threading.Condition) -> None:
        self.id, self._task, self._ready = worker_id, task, ready
        self._numbers = [0] * 32
        self._tasks: queue.SimpleQueue = queue.SimpleQueue()
        self._results: collections.deque = collections.deque()
        self._rng = _make_rng(task.base_seed + worker_id)
        self._first = _rng_state(self._rng)
        self._first_state: Any = None  # of the dataset
        self._progress = Progress(self._numbers)
        self._fetcher: Any = None
        self._failed: Any = None
        self._ended = False
        self.nbytes = 0  # of all its batches
        self._where = f"in DataLoader worker thread {worker_id}"
        self.process = threading.Thread(
            target=self._run, name=f"DataLoader worker {worker_id}", daemon=True
        )
        self.process.start()

    @property
    def pid(self) -> int | None:
        """The number of the thread."""
        return self.process.native_id

    received = 0  # nothing arrives bit by bit

    def cells(self) -> list[int]:
        """The worker's numbers."""
        return self._numbers

    def set_epoch(self, epoch: int) -> None:
        """Makes tasks of other epochs void, and drops results not read."""
        self._numbers[Cell.CURRENT_EPOCH] = epoch
        self._results.clear()

    def put(self, number: int, task: Any) -> None:
        """Gives it something to do."""
        self._tasks.put((number, task))

    def get(self) -> tuple[int, Any, int] | None:
        """(number of a message, its content, its bytes), None when there is none yet."""
        return self._results.popleft() if self._results else None

    def has_message(self) -> bool:
        """Whether get() gives one."""
        return bool(self._results)

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self.process.is_alive()

    def where(self, index: Any) -> str:
        """What it does: "loading sample 2 of batch 3 (index 17)"."""
        return where_in_batch(self._numbers, index)

    def stats(self) -> dict[str, Any]:
        """Its part of ``DataLoader.stats()``."""
        return {"id": self.id, "pid": self.pid, **stats_of(self._numbers, self.nbytes)}

    def stack(self) -> str:
        """The thread's Python stack now."""
        frame = sys._current_frames().get(self.process.ident or 0)
        return "" if frame is None else "".join(traceback.format_stack(frame))

    def close(self) -> None:
        """Tells it to end after the sample that it loads."""
        self._numbers[Cell.CURRENT_EPOCH] = -1
        self._tasks.put(None)

    def end(self, deadline: float) -> None:
        """Waits until it has ended, or leaves it behind."""
        if self.process is not threading.current_thread():
            self.process.join(max(0.0, deadline - time.monotonic()))

    # --- in the thread ---

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            with self._ready:
                self._ready.notify_all()

    def _serve(self) -> None:
        task = self._task
        _ThreadInfo.local.info = WorkerInfo(
            self.id, task.num_workers, task.base_seed + self.id, task.dataset, self._rng, "thread"
        )
        try:
            if task.init_fn is not None:
                task.init_fn(self.id)
            self._first = _rng_state(self._rng)
            self._first_state = state_of_dataset(task, None)
            self._start(task.shared_seed, task.resume[self.id] if task.resume else None)
        except BaseException:
            self._failed = self._wrap()
        while True:
            begin = time.perf_counter_ns()
            self._numbers[Cell.STATE] = State.WAITING
            message = self._tasks.get()
            self._numbers[Cell.WAITED_NS] += time.perf_counter_ns() - begin
            if message is None:
                break
            number, index = message
            if number == RESUME:
                if index.epoch == self._numbers[Cell.CURRENT_EPOCH]:
                    self._resume(index)
            elif number >> EPOCH_BITS == self._numbers[Cell.CURRENT_EPOCH] and not self._ended:
                self._answer(number, index)
        self._numbers[Cell.STATE] = State.ENDED

    def _start(self, seed: int | None, resume: Any = None) -> None:
        if resume is not None and resume.start is not None:
            _restore(self._rng, resume.start)
        self._fetcher = make_fetcher(self._task, make_dataset(self._task, seed), resume)
        self._fetcher.progress = self._progress
        self._ended = False
        if resume is not None and resume.samples > 0 and resume.random is not None:
            _restore(self._rng, resume.random)

    def _resume(self, message: ResumeIteration) -> None:
        try:
            _restore(self._rng, self._first if message.random is None else message.random)
            go_back(self._task, message, self._first_state)
            self._start(message.seed)
        except BaseException:
            self._failed = self._wrap()

    def _wrap(self, note: str = "") -> ExceptionWrapper:
        """The current exception; one that would end the program becomes a RuntimeError."""
        wrapper = ExceptionWrapper(where=self._where, note=note)
        if not issubclass(wrapper.exc_type, Exception):
            wrapper.exc_type = RuntimeError
        return wrapper

    def _answer(self, number: int, index: Any) -> None:
        numbers = self._numbers
        begin = self._progress.begin_batch(number)
        try:
            data = self._failed
            if data is None:
                data = fetch(
                    self._fetcher, index, self._task, self.id, self._where, f"worker {self.id}"
                )
        except Abandoned:
            return
        except BaseException:  # sys.exit in a sample, say, which would end the thread unseen
            at = where_in_batch(numbers, index)
            data = self._wrap(f"\n(worker {self.id}, {at})\n")
        loaded = self._progress.loaded()
        numbers[Cell.LOADED_NS] += loaded - begin
        self._ended = isinstance(data, _IterableDatasetStopIteration)
        random_state, state = _rng_state(self._rng), None
        try:
            state = state_of_dataset(self._task, self._fetcher)
        except BaseException:
            data = self._wrap()
        nbytes = bytes_of(data)
        self.nbytes += nbytes
        with self._ready:
            self._results.append((number, (data, random_state, state), nbytes))
            self._ready.notify_all()
        numbers[Cell.SENT_NS] += self._progress.sent() - loaded


class _MultiThreadingDataLoaderIter(WorkersIter):
    """Hands the sampler's indices to threads in turn."""

    def _start(self, loader: Any, task: Task) -> None:
        if _ThreadInfo.local is None:
            _ThreadInfo.local = threading.local()
        self._ready = threading.Condition()
        self._processes = [ThreadWorker(task, i, self._ready) for i in range(self._num_workers)]
        self._shutdown = False
        self._workers = [worker.process for worker in self._processes]
        end_at_exit(self)

    def _sleep(self, waiting: list[int], seconds: float) -> None:
        with self._ready:
            self._ready.wait_for(
                lambda: any(self._processes[i].has_message() for i in waiting), seconds
            )
        for i in waiting:
            worker = self._processes[i]
            if not worker.is_alive() and not worker.has_message():
                self._shutdown_workers()
                raise RuntimeError(
                    f"DataLoader worker thread {i} exited unexpectedly, {worker.where(None)}"
                )

    def _end_workers(self) -> None:
        end_workers(self._processes)
