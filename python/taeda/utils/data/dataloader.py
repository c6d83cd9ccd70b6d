"""DataLoader: batches from a dataset."""

from __future__ import annotations

import math
import os
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from . import _utils
from ._endless import _ConstantBatchSampler, _InfiniteConstantSampler
from ._iterators import _BaseDataLoaderIter as _BaseDataLoaderIter
from ._iterators import _DatasetKind, _SingleProcessDataLoaderIter
from ._loader_state import check_state, complete_state, is_in_epoch, restore_between_epochs
from ._options import (
    check_batch_sampler_options,
    check_context,
    check_iterable_options,
    check_sampler_options,
    check_worker_options,
    with_shuffling,
)
from ._state import Resuming
from .dataset import Dataset, IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
_collate_fn_t = Callable[[list[T]], Any]

default_collate = _utils.collate.default_collate
default_convert = _utils.collate.default_convert
get_worker_info = _utils.worker.get_worker_info


def __getattr__(name: str) -> Any:
    if name == "_MultiProcessingDataLoaderIter":
        from ._multiprocess import _MultiProcessingDataLoaderIter

        return _MultiProcessingDataLoaderIter
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_FRESH = {"batches": 0, "finished": False}


class DataLoader(Generic[T_co]):
    """Iterates over batches of a dataset, loaded here or by workers.

    Args:
        dataset: a Dataset (by index) or IterableDataset.
        batch_size: samples a batch; None gives single samples.
        shuffle: a new random order each epoch, from ``generator`` or the default one.
        sampler, batch_sampler: orders of one's own, instead of ``shuffle`` (and ``batch_size``).
        num_workers: how many workers load; 0 loads in this process.
        collate_fn: makes a batch of a list of samples. Default: ``default_collate``.
        pin_memory: moves tensors to page-locked memory, where there is a CUDA device.
        drop_last: leaves an incomplete last batch out.
        timeout: seconds to wait for a batch before RuntimeError; 0 waits. Either way a worker that
            hangs is warned of with its Python stack, after 2 to 10 seconds, by what samples took
            before; later where they take longer than 3.
        worker_init_fn: called in each worker with its number, after it is seeded.
        multiprocessing_context: how workers start: "fork", "forkserver", "spawn", a context of
            ``multiprocessing``, or "thread" for threads of this process. Default: Python's.
        generator: draws the order and the workers' seeds.
        prefetch_factor: batches that each worker loads ahead, 2 by default.
        persistent_workers: keeps the workers from one epoch to the next.
        in_order: False gives batches out as they come.

    The batches and their order do not depend on the number of workers. Worker i seeds ``random``,
    NumPy (if it is loaded) and taeda by a number that the trainer draws, plus i. See
    docs/notes/data-loading.md.

    >>> import taeda as torch
    >>> dataset = torch.utils.data.TensorDataset(torch.arange(6))
    >>> loader = torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=1)
    >>> [batch.tolist() for (batch,) in loader]
    [[0, 1, 2, 3], [4, 5]]
    """

    dataset: Any
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Sampler | Iterable
    prefetch_factor: int | None
    _iterator: Any = None
    __initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co] | Sequence[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler | Iterable | None = None,
        batch_sampler: Sampler[list] | Iterable[list] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[list], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Any = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        if hasattr(type(dataset), "register_datapipe_as_function"):
            dataset, shuffle = with_shuffling(dataset, shuffle)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        iterable = isinstance(dataset, IterableDataset)
        self._dataset_kind = _DatasetKind.Iterable if iterable else _DatasetKind.Map
        if iterable:
            shuffle = check_iterable_options(shuffle, sampler, batch_sampler)
        else:
            shuffle = bool(shuffle)
        if batch_sampler is not None:
            check_batch_sampler_options(batch_size, shuffle, sampler, drop_last)
            batch_size, drop_last = None, False
        else:
            check_sampler_options(batch_size, shuffle, sampler, drop_last)
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)  # type: ignore[arg-type]
            else:
                sampler = SequentialSampler(dataset)  # type: ignore[arg-type]
        if batch_size is not None and batch_sampler is None:
            endless = isinstance(sampler, _InfiniteConstantSampler)
            kind = _ConstantBatchSampler if endless else BatchSampler
            batch_sampler = kind(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self.__initialized = True
        self._IterableDataset_len_called: int | None = None
        self._iterator = None
        self._latest: Any = None  # a weak reference to the last pass
        self._record: dict[str, Any] = {}  # of it, when it has gone
        self._resume: dict[str, Any] | None = None
        self.check_worker_number_rationality()

    def __setattr__(self, attr: str, val: Any) -> None:
        fixed = (
            "batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers",
        )  # fmt: skip
        if self.__initialized and attr in fixed:
            raise ValueError(
                f"{attr} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(attr, val)

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    @property
    def multiprocessing_context(self) -> Any:
        """How workers start: a context of multiprocessing, "thread", or None for the default."""
        return self.__multiprocessing_context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        self.__multiprocessing_context = check_context(context, self.num_workers)

    def _get_iterator(self) -> _BaseDataLoaderIter:
        resume, self._resume = self._resume, None
        with Resuming(self, resume):
            if self.num_workers == 0:
                return _SingleProcessDataLoaderIter(self, resume)
            self.check_worker_number_rationality()
            if self.multiprocessing_context == "thread":
                from ._threads import _MultiThreadingDataLoaderIter

                return _MultiThreadingDataLoaderIter(self, resume)
            from ._multiprocess import _MultiProcessingDataLoaderIter

            return _MultiProcessingDataLoaderIter(self, resume)

    def __iter__(self) -> Iterator[Any]:
        if self.persistent_workers and self.num_workers > 0:
            known = self._iterator
            if not _can_go_on(known) or self._resume is not None:
                if known is not None:
                    known._shutdown_workers()
                self._iterator = known = self._get_iterator()
            else:
                known._reset(self)
        else:
            known = self._get_iterator()
        self._latest, self._record = weakref.ref(known), known._record
        return known

    def state_dict(self) -> dict[str, Any]:
        """Where the current pass is: what :meth:`load_state_dict` goes on from.

        Plain values. It holds the generators as they were when the epoch began and the workers'
        random numbers after the batches that were given out; the program saves its own
        (``torch.get_rng_state()``). An iterable dataset that has ``state_dict`` and
        ``load_state_dict`` is asked for its own.

        >>> import taeda as torch
        >>> loader = torch.utils.data.DataLoader(range(6), batch_size=2)
        >>> batches = iter(loader)
        >>> next(batches)
        tensor([0, 1])
        >>> state = loader.state_dict()
        >>> again = torch.utils.data.DataLoader(range(6), batch_size=2)
        >>> again.load_state_dict(state)
        >>> [batch.tolist() for batch in again]
        [[2, 3], [4, 5]]
        """
        if self._resume is not None:
            return self._resume
        latest = None if self._latest is None else self._latest()
        state = self._record.get("state", _FRESH) if latest is None else latest._state()
        return complete_state(self, state)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """The next pass goes on where ``state_dict`` was taken, without loading anything again.

        This takes no longer the later in the epoch that was: the samplers of this module draw
        their order again, as an epoch does when it begins, and go to the index at once. Other
        samplers are asked for the indices again. Iterable datasets without a ``state_dict`` and
        ``load_state_dict`` of their own are read up to there, with a warning.

        ValueError where this loader would not go on with the same batches: its ``num_workers``,
        ``batch_size``, ``drop_last``, sampler (``shuffle``) or number of samples is another.
        """
        check_state(self, state_dict)
        self._resume = state_dict if is_in_epoch(state_dict) else None
        if self._resume is None:
            restore_between_epochs(self, state_dict)

    def stats(self) -> dict[str, Any]:
        """Where the time of the current or last pass goes.

        ``trainer_waited_seconds`` of ``seconds`` is what the program waited for data; of each
        worker, ``loading_seconds`` is what its samples took and ``waited_seconds`` what it had
        nothing to do. A trainer that waits long while workers do not needs more of them.
        ``pages_dropped`` counts a forked worker's copies of memory pages that it gave up because
        they held what all workers share, ``sharing_skipped`` how often it could not, as with
        threads of its own. ``copied_bytes`` is how much of the program's memory it has copied by
        reading objects, as it saw when it looked last, and ``slowest_step_seconds`` what its
        longest sample took, or to collate or send a batch.

        >>> import taeda as torch
        >>> loader = torch.utils.data.DataLoader(range(6), batch_size=2)
        >>> for batch in loader:
        ...     pass
        >>> loader.stats()["batches"]
        3
        """
        latest = None if self._latest is None else self._latest()
        return dict(self._record.get("stats", {})) if latest is None else latest._stats()

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_latest": None}

    def __len__(self) -> int:
        if self._dataset_kind == _DatasetKind.Map:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(self.dataset)
        if self.batch_size is not None:
            if self.drop_last:
                length = length // self.batch_size
            else:
                length = math.ceil(length / self.batch_size)
        return length

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than there are processors to run them."""
        affinity = getattr(os, "sched_getaffinity", None)  # not on every system
        most = len(affinity(0)) if affinity else os.cpu_count()
        if most is None or self.num_workers <= most:
            return
        warnings.warn(
            f"This DataLoader will create {self.num_workers} worker processes in total. Our "
            f"suggested max number of worker in current system is {most}, which is smaller than "
            "what this DataLoader is going to create. Please be aware that excessive worker "
            "creation might get DataLoader running slow or even freeze, lower the worker number to "
            "avoid potential slowness/freeze if necessary.",
            stacklevel=3,
        )


def _can_go_on(iterator: Any) -> bool:
    """Whether persistent workers can load another epoch: they live, and are this process's."""
    return iterator is not None and not iterator._shutdown and iterator._owner == os.getpid()
