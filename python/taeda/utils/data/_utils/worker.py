"""What a worker of a DataLoader knows of itself."""

from __future__ import annotations

from typing import Any, NamedTuple

from .resume import ResumeIteration as _ResumeIteration  # noqa: F401  # PyTorch's name and address

__all__ = ["WorkerInfo", "get_worker_info"]


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


_worker_info: WorkerInfo | None = None
_channel: Any = None  # to the trainer, in a worker process


class _ThreadInfo:
    """Tells threads that are workers; made when the first one starts."""

    local: Any = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that this process or thread is; None outside of workers.

    Data sets ask it in ``__iter__`` to read their share only, else every worker would read all.

    Returns:
        WorkerInfo: ``id``, from 0 to ``num_workers - 1``; ``num_workers``; ``seed``, that of the
        worker's random numbers; ``dataset``, the worker's own copy.

    >>> class Numbers(torch.utils.data.IterableDataset):
    ...     def __iter__(self):
    ...         info = torch.utils.data.get_worker_info()
    ...         first, step = (0, 1) if info is None else (info.id, info.num_workers)
    ...         return iter(range(first, 6, step))
    >>> list(torch.utils.data.DataLoader(Numbers(), batch_size=None))
    [0, 1, 2, 3, 4, 5]
    """
    if _ThreadInfo.local is not None:
        own = getattr(_ThreadInfo.local, "info", None)
        if own is not None:
            return own
    return _worker_info


def shared_storage(nbytes: int) -> Any:
    """Memory that can be sent to the trainer as it is; None outside of workers and without it."""
    return None if _channel is None else _channel.empty(nbytes)
