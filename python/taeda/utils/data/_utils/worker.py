"""The worker's side of a DataLoader: what it knows of itself, and its loop."""

from __future__ import annotations

import contextlib
import gc
import itertools
import os
import pickle
import signal
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import taeda

__all__ = ["WorkerInfo", "get_worker_info"]

_ITERABLE = 1  # the _DatasetKind of iterable datasets


class WorkerInfo(NamedTuple):
    """What :func:`get_worker_info` gives in a worker.

    Attributes:
        id: its number, from 0 on.
        num_workers: how many workers the loader has.
        seed: the seed of its random numbers.
        dataset: its copy of the dataset (a thread's: the dataset itself).
        rng: a thread's own generators, since it shares the global ones; None in a process.
        worker_method: "multiprocessing" or "thread".
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: _RNG | None = None
    worker_method: str | None = "multiprocessing"


class _RNG(NamedTuple):
    """A thread's generators, seeded as a process's global ones would be."""

    random_generator: Any
    torch_generator: Any
    numpy_generator: Any = None


class _IterableDatasetStopIteration(NamedTuple):
    """Sent instead of a batch when a worker's part of an iterable dataset has ended."""

    worker_id: int


class _ResumeIteration(NamedTuple):
    """Sent to persistent workers when the next epoch begins."""

    seed: int | None = None
    epoch: int = 0
    random: Any = None  # after the last batch that was given out; None where there was none
    left: tuple | None = None  # (the dataset's state then,) of an epoch that was left early


_worker_info: WorkerInfo | None = None
_channel: Any = None  # to the trainer, in a worker process


class _ThreadInfo:
    """Tells threads that are workers; made when the first one starts."""

    local: Any = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that this process or thread is; None outside of workers."""
    if _ThreadInfo.local is not None:
        own = getattr(_ThreadInfo.local, "info", None)
        if own is not None:
            return own
    return _worker_info


def shared_storage(nbytes: int) -> Any:
    """Memory that can be sent to the trainer as it is; None outside of workers and without it."""
    return None if _channel is None else _channel.empty(nbytes)


class Cell:
    """Indices of a channel's numbers: what the worker does now, and what it did."""

    STATE, EPOCH, BATCH, SAMPLE, SAMPLES = range(5)
    WAITED_NS, LOADED_NS, SENT_NS, BATCHES = range(5, 9)
    SIGNAL = 10  # that makes the worker write its stack; 0: none
    CURRENT_EPOCH = 11  # the trainer's; tasks of others are void
    TASKS_READ, RESULTS_READ = 12, 13  # messages that the worker, and the trainer, took
    PAGES_DROPPED, LOOKS_SKIPPED = 14, 15  # by _C._SharedPages


class State:
    """Values of ``Cell.STATE``."""

    STARTING, WAITING, LOADING, COLLATING, SENDING, ENDED = range(6)


EPOCH_BITS = 40  # a message's number is epoch << 40 | batch
RESUME, OVERFLOW = -1, -2  # numbers of messages that are no batches


class Abandoned(Exception):
    """The trainer does not want the batch any more."""


class Progress:
    """Writes down which sample is loaded, and stops between samples nobody waits for."""

    def __init__(self, cells: Any) -> None:
        self.cells = cells
        self.epoch = 0

    def watch(self, indices: Any) -> Iterator[Any]:
        """The indices, each noted while its sample is loaded."""
        cells, epoch = self.cells, self.epoch
        for number, index in enumerate(indices):
            if cells[Cell.CURRENT_EPOCH] != epoch:
                raise Abandoned
            cells[Cell.SAMPLE] = number
            yield index

    def collating(self) -> None:
        """All samples are there."""
        self.cells[Cell.STATE] = State.COLLATING


class Task(NamedTuple):
    """What all workers of an iterator are told when they start."""

    dataset_kind: int
    dataset: Any
    auto_collation: bool
    collate_fn: Any
    drop_last: bool
    base_seed: int
    init_fn: Any
    num_workers: int
    shared_seed: int | None
    resume: list | None = None  # for each worker, what it goes on from


class SentTask:
    """A task on its way to a worker, where what its parts raise when unpickled is kept."""

    def __init__(self, task: Task, worker_id: int) -> None:
        self.task, self.worker_id = task, worker_id
        self.failed: Any = None

    def __getstate__(self) -> tuple:
        from multiprocessing.reduction import ForkingPickler

        plain = self.task._replace(dataset=None, collate_fn=None, init_fn=None, resume=None)
        return bytes(ForkingPickler.dumps(self.task)), plain, self.worker_id

    def __setstate__(self, state: tuple) -> None:
        content, self.task, self.worker_id = state
        self.failed = None
        try:
            self.task = pickle.loads(content)
        except Exception:
            from taeda._utils import ExceptionWrapper

            self.failed = ExceptionWrapper(where=f"in DataLoader worker process {self.worker_id}")


def make_dataset(task: Task, seed: int | None) -> Any:
    """The dataset, its pipes seeded alike in all workers."""
    if seed is None:
        return task.dataset
    from ..graph_settings import apply_random_seed

    generator = taeda.Generator()
    generator.manual_seed(seed)
    return apply_random_seed(task.dataset, generator)


def make_fetcher(task: Task, dataset: Any, resume: Any = None) -> Any:
    """What loads batches, past those that were loaded before an interruption."""
    from .._iterators import _DatasetKind

    state = resume.dataset if resume is not None else None
    if state is not None:
        dataset.load_state_dict(state)  # one that has ended may be about to start over
    fetcher = _DatasetKind.create_fetcher(
        task.dataset_kind, dataset, task.auto_collation, task.collate_fn, task.drop_last
    )
    if resume is not None and state is None and task.dataset_kind == _DatasetKind.Iterable:
        fetcher.skip(resume.samples)
    if resume is not None and resume.ended:
        fetcher.ended = True
    return fetcher


def state_of_dataset(task: Task, fetcher: Any) -> tuple[Any, bool] | None:
    """(state, whether it has ended) of an iterable dataset that has a state, else None."""
    if task.dataset_kind != _ITERABLE or not has_state(task.dataset):
        return None
    return task.dataset.state_dict(), getattr(fetcher, "ended", False)


def has_state(dataset: Any) -> bool:
    """Whether a dataset can say where it is, and go there."""
    return hasattr(dataset, "state_dict") and hasattr(dataset, "load_state_dict")


def go_back(task: Task, message: _ResumeIteration, first: Any) -> None:
    """Puts a dataset that was read ahead where the program left it; ``first`` is its state before
    it was read at all."""
    if message.left is None or first is None:
        return
    (state,) = message.left
    task.dataset.load_state_dict(first[0] if state is None else state)


_MOST_INDICES = 16  # of a batch that a message names
_STATES = ("starting", "waiting for a batch", "loading", "in collate_fn", "sending", "ended")


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


def fetch(fetcher: Any, index: Any, task: Task, worker_id: int, where: str, at: str) -> Any:
    """A batch, the exception that loading it raised, or the end of an iterable dataset."""
    try:
        return fetcher.fetch(index)
    except Abandoned:
        raise
    except Exception as error:
        if isinstance(error, StopIteration) and task.dataset_kind == _ITERABLE:
            return _IterableDatasetStopIteration(worker_id)
        from taeda._utils import ExceptionWrapper

        return ExceptionWrapper(where=where, note=_note(fetcher, index, at))


def _note(fetcher: Any, index: Any, at: str) -> str:
    cells = fetcher.progress.cells
    return f"\n({at}, {where_in_batch(cells, index)})\n"


def _worker_loop(link: Any, sent: SentTask, trainer: int) -> None:
    """What a worker process runs."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        channel = link.attach()
        _WorkerLoop(link, channel, sent, trainer).run()
    except (KeyboardInterrupt, BrokenPipeError):
        link.write_traceback()  # the trainer is interrupted too, or gone, or will show it
    except BaseException:
        link.write_traceback()
        raise


class _WorkerLoop:
    def __init__(self, link: Any, channel: Any, sent: SentTask, trainer: int) -> None:
        from .messages import dumps
        from .seeds import RandomState, Snapshots, seed_worker

        global _channel
        task, worker_id = sent.task, sent.worker_id
        self._link, self._channel, self._task, self._id = link, channel, task, worker_id
        self._trainer, self._dumps = trainer, dumps
        self._at = f"worker {worker_id}, pid {os.getpid()}"
        self._cells = memoryview(channel)
        gc.freeze()  # the collector would write to all of the trainer's objects, and copy them so
        taeda._C._end_with_process(trainer)  # even when it is killed
        link.write_stacks_on_signal(self._cells)
        taeda.set_num_threads(1)
        seed_worker(task.base_seed, worker_id)
        self._pages = link.start_sharing_pages(task.num_workers)
        _channel = channel
        self._where = f"in DataLoader worker process {worker_id}"
        self._snapshots = Snapshots()
        self._progress = Progress(self._cells)
        self._fetcher: Any = None
        self._failed = sent.failed
        self._ended = False
        self._sent = 0
        self._first = RandomState()
        self._first_state: Any = None  # of the dataset
        if not self._failed:
            self._start(task.resume[worker_id] if task.resume else None)

    def _start(self, resume: Any) -> None:
        from taeda._utils import ExceptionWrapper

        global _worker_info
        task = self._task

        from .seeds import RandomState

        try:
            dataset = make_dataset(task, task.shared_seed)
            seed = task.base_seed + self._id
            _worker_info = WorkerInfo(self._id, task.num_workers, seed, dataset)
            if task.init_fn is not None:
                task.init_fn(self._id)
            self._first = RandomState.now()
            self._first_state = state_of_dataset(task, None)
            if resume is not None and resume.start is not None:
                resume.start.restore()
            self._make_fetcher(dataset, resume)
            if resume is not None and resume.samples > 0 and resume.random is not None:
                resume.random.restore()
        except Exception:
            self._failed = ExceptionWrapper(where=self._where)

    def _make_fetcher(self, dataset: Any, resume: Any = None) -> None:
        self._fetcher = make_fetcher(self._task, dataset, resume)
        self._fetcher.progress = self._progress
        self._ended = False

    def run(self) -> None:
        """Answers tasks until the trainer closes the channel or is gone."""
        from . import MP_STATUS_CHECK_INTERVAL

        cells, channel = self._cells, self._channel
        while not channel.closed:
            message = channel.receive()
            if message is None:
                cells[Cell.STATE] = State.WAITING
                begin = time.perf_counter_ns()
                channel.wait(MP_STATUS_CHECK_INTERVAL)
                cells[Cell.WAITED_NS] += time.perf_counter_ns() - begin
                if not is_alive(self._trainer):
                    break
                continue
            cells[Cell.TASKS_READ] += 1
            number, data, _, _ = message
            if number == RESUME:
                self._resume(pickle.loads(data))
            elif number >> EPOCH_BITS == cells[Cell.CURRENT_EPOCH] and not self._ended:
                self._answer(number, pickle.loads(data))
                if self._pages is not None:
                    self._share_pages()
        cells[Cell.STATE] = State.ENDED

    def _share_pages(self) -> None:
        """Gives up the copies of the trainer's memory that hold what it holds."""
        if self._pages.after_batch():
            cells = self._cells
            cells[Cell.PAGES_DROPPED], _, cells[Cell.LOOKS_SKIPPED] = self._pages.counts()

    def _resume(self, message: _ResumeIteration) -> None:
        from taeda._utils import ExceptionWrapper

        from .seeds import Snapshots, restore_worker

        if message.epoch != self._cells[Cell.CURRENT_EPOCH]:
            return  # the program has left that epoch
        self._snapshots = Snapshots()
        if self._fetcher is None:
            return  # it failed at its start
        try:
            state = self._first if message.random is None else message.random
            restore_worker(state, self._task.base_seed, self._id)
            go_back(self._task, message, self._first_state)
            self._make_fetcher(make_dataset(self._task, message.seed))
        except Exception:
            self._failed = ExceptionWrapper(where=self._where)

    def _answer(self, number: int, index: Any) -> None:
        cells, progress = self._cells, self._progress
        progress.epoch = number >> EPOCH_BITS
        cells[Cell.BATCH] = number & ((1 << EPOCH_BITS) - 1)
        cells[Cell.SAMPLE] = 0
        cells[Cell.STATE] = State.LOADING
        begin = time.perf_counter_ns()
        try:
            data = self._failed or fetch(
                self._fetcher, index, self._task, self._id, self._where, self._at
            )
        except Abandoned:
            return
        loaded = time.perf_counter_ns()
        cells[Cell.LOADED_NS] += loaded - begin
        cells[Cell.STATE] = State.SENDING
        self._ended = isinstance(data, _IterableDatasetStopIteration)
        self._send(number, data, index)
        cells[Cell.BATCHES] += 1
        cells[Cell.SENT_NS] += time.perf_counter_ns() - loaded

    def _send(self, number: int, data: Any, index: Any) -> None:
        state: tuple = (self._snapshots.take(), None)
        try:
            state = (state[0], state_of_dataset(self._task, self._fetcher))
        except Exception:
            from taeda._utils import ExceptionWrapper

            data = ExceptionWrapper(where=self._where)
        try:
            content, items = self._dumps((data, *state))
        except Exception as error:
            from taeda._utils import ExceptionWrapper

            from .collate import default_collate
            from .unpicklable import describe

            if not isinstance(data, ExceptionWrapper):
                batch = f"batch {self._cells[Cell.BATCH]}{name_indices(index)}"
                samples = None if self._task.collate_fn is default_collate else index
                note = f"\n({self._at}: {batch} {describe(data, samples, self._dumps)})\n"
                data = ExceptionWrapper(
                    (type(error), error, error.__traceback__), self._where, note
                )
            content, items = _dump_exception(data, state)
        if not self._wait_for_room(number):
            return
        if self._channel.send(number, content, items):
            self._sent += 1
            self._link.notify()
        else:
            self._send_by_pipe(number, (data, *state))

    def _wait_for_room(self, number: int) -> bool:
        """Waits until the trainer has read enough results; False when it wants this one no more."""
        cells = self._cells
        while number >> EPOCH_BITS == cells[Cell.CURRENT_EPOCH]:
            if self._sent - cells[Cell.RESULTS_READ] < self._link.capacity:
                return True
            if self._channel.closed or not is_alive(self._trainer):
                break
            time.sleep(0.01)
        return False

    def _send_by_pipe(self, number: int, content: Any) -> None:
        """For what there is no shared memory for."""
        file = pickle.dumps(content, 5)
        head = pickle.dumps((number, len(file)))
        while not self._channel.send(OVERFLOW, head, []):
            if self._channel.closed or not is_alive(self._trainer):
                return
            time.sleep(0.01)  # until the trainer has read the last one
        self._sent += 1
        self._link.notify()
        self._link.write(file)


def _dump_exception(wrapper: Any, state: tuple) -> tuple[bytes, list]:
    """A message with an exception, by another type where its own cannot be pickled, and without
    the dataset's state where that cannot."""
    from .messages import dumps

    kinds = (wrapper.exc_type, RuntimeError)
    for kind, rest in itertools.product(kinds, (state, (state[0], None))):
        wrapper.exc_type = kind
        with contextlib.suppress(Exception):
            return dumps((wrapper, *rest))
    return dumps((wrapper, None, None))


def is_alive(pid: int) -> bool:
    """Whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
