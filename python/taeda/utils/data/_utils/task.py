"""What workers are told when they start: the dataset, and how batches are made of it."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import taeda
from taeda._utils import ExceptionWrapper

from .progress import Abandoned, where_in_batch
from .resume import has_state
from .worker import _IterableDatasetStopIteration

__all__ = ["SentTask", "Task", "fetch", "make_dataset", "make_fetcher", "state_of_dataset"]

_ITERABLE = 1  # the _DatasetKind of iterable datasets


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


def fetch(fetcher: Any, index: Any, task: Task, worker_id: int, where: str, at: str) -> Any:
    """A batch, the exception that loading it raised, or the end of an iterable dataset."""
    try:
        return fetcher.fetch(index)
    except Abandoned:
        raise
    except Exception as error:
        if isinstance(error, StopIteration) and task.dataset_kind == _ITERABLE:
            return _IterableDatasetStopIteration(worker_id)
        return ExceptionWrapper(where=where, note=_note(fetcher, index, at))


def _note(fetcher: Any, index: Any, at: str) -> str:
    cells = fetcher.progress.cells
    return f"\n({at}, {where_in_batch(cells, index)})\n"
