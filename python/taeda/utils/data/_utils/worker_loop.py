"""What a worker process runs: it answers the trainer's tasks with batches."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import time
from typing import Any

import taeda
from taeda._utils import ExceptionWrapper

from . import worker
from .copied_memory import CopiedMemory
from .progress import EPOCH_BITS, RESUME, Abandoned, Cell, Progress, State
from .resume import ResumeIteration, go_back
from .seeds import RandomState, restore_worker, seed_worker
from .sender import Sender, is_alive
from .task import SentTask, fetch, make_dataset, make_fetcher, state_of_dataset

__all__ = ["run_worker"]


def run_worker(link: Any, sent: SentTask, trainer: int) -> None:
    """The target of a worker process; ``trainer`` is the number of the process it works for."""
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
        task, worker_id = sent.task, sent.worker_id
        self._channel, self._task, self._id, self._trainer = channel, task, worker_id, trainer
        self._at = f"worker {worker_id}, pid {os.getpid()}"
        self._where = f"in DataLoader worker process {worker_id}"
        self._cells = memoryview(channel)
        gc.freeze()  # the collector would write to all of the trainer's objects, and copy them so
        taeda._C._end_with_process(trainer)  # even when it is killed
        link.write_stacks_on_signal(self._cells)
        taeda.set_num_threads(1)
        seed_worker(task.base_seed, worker_id)
        self._pages = link.start_sharing_pages(task.num_workers)
        self._copied = CopiedMemory() if link.is_forked else None
        worker._channel = channel
        self._sender = Sender(link, channel, task, trainer)
        self._progress = Progress(self._cells)
        self._fetcher: Any = None
        self._failed = sent.failed
        self._ended = False
        self._first = RandomState()
        self._first_state: Any = None  # of the dataset
        if not self._failed:
            self._start(task.resume[worker_id] if task.resume else None)

    def _start(self, resume: Any) -> None:
        task = self._task
        try:
            dataset = make_dataset(task, task.shared_seed)
            worker._worker_info = worker.WorkerInfo(
                self._id, task.num_workers, task.base_seed + self._id, dataset
            )
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
                self._look_at_memory()
        cells[Cell.STATE] = State.ENDED

    def _look_at_memory(self) -> None:
        """Gives up the copies of the trainer's memory that hold what it holds, and says how much
        the others are."""
        cells = self._cells
        if self._pages is not None and self._pages.after_batch():
            cells[Cell.PAGES_DROPPED], _, cells[Cell.LOOKS_SKIPPED] = self._pages.counts()
        if self._copied is not None and self._copied.after_batch():
            cells[Cell.COPIED_BYTES] = self._copied.nbytes

    def _resume(self, message: ResumeIteration) -> None:
        if message.epoch != self._cells[Cell.CURRENT_EPOCH]:
            return  # the program has left that epoch
        self._sender.begin_epoch()
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
        cells = self._cells
        begin = self._progress.begin_batch(number)
        try:
            data = self._failed or fetch(
                self._fetcher, index, self._task, self._id, self._where, self._at
            )
        except Abandoned:
            return
        loaded = self._progress.loaded()
        cells[Cell.LOADED_NS] += loaded - begin
        self._ended = isinstance(data, worker._IterableDatasetStopIteration)
        self._sender.send(number, data, index, self._fetcher, self._where, self._at)
        cells[Cell.SENT_NS] += self._progress.sent() - loaded
