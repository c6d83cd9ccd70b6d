"""DataLoader: batches from a dataset."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

import taeda

from . import _utils
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "get_worker_info", "default_collate", "default_convert"]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
_collate_fn_t = Callable[[list[T]], Any]

default_collate = _utils.collate.default_collate
default_convert = _utils.collate.default_convert
get_worker_info = _utils.worker.get_worker_info

_warned_of_workers = False


class _DatasetKind:
    Map = 0
    Iterable = 1


class _InfiniteConstantSampler(Sampler):
    """The sampler of an iterable dataset: it decides only how often to ask."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class _ConstantBatchSampler(BatchSampler):
    """Batches of the sampler above, of any size: an iterable dataset may end before they do."""

    def __iter__(self) -> Iterator[Any]:
        while True:
            yield range(self.batch_size)  # only its length is read


def _warn_of_workers() -> None:
    global _warned_of_workers
    if not _warned_of_workers:
        _warned_of_workers = True
        warnings.warn(
            "DataLoader: worker processes are not there yet; num_workers > 0 loads in the main "
            "process, with the same samples in the same order",
            stacklevel=4,
        )


class DataLoader(Generic[T_co]):
    """Iterates over batches of a dataset.

    Args:
        dataset: a Dataset (by index) or IterableDataset.
        batch_size: samples a batch; None gives single samples.
        shuffle: a new random order each epoch, from ``generator`` or the default one.
        sampler, batch_sampler: orders of one's own, instead of ``shuffle`` (and ``batch_size``).
        num_workers: loading is in this process so far, whatever is asked for.
        collate_fn: makes a batch of a list of samples. Default: ``default_collate``.
        drop_last: leaves an incomplete last batch out.
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
        dataset: Any,
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
        _check_worker_options(num_workers, timeout, prefetch_factor, persistent_workers)
        if hasattr(type(dataset), "register_datapipe_as_function"):
            dataset, shuffle = _with_shuffling(dataset, shuffle)
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
            shuffle = _check_iterable_options(shuffle, sampler, batch_sampler)
        else:
            shuffle = bool(shuffle)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive "
                    "with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually exclusive, "
                "with drop_last"
            )
        if sampler is None:
            if iterable:
                sampler = _InfiniteConstantSampler()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
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
        if num_workers > 0:
            _warn_of_workers()

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

    def _get_iterator(self) -> _SingleProcessDataLoaderIter:
        return _SingleProcessDataLoaderIter(self)

    def __iter__(self) -> Iterator[Any]:
        return self._get_iterator()

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
        """Nothing to check without workers."""


def _check_worker_options(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to disable "
            "multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _with_shuffling(pipe: Any, shuffle: bool | None) -> tuple[Any, bool | None]:
    """(the pipe, which shuffles as asked if it iterates, what is left to ask of a sampler)"""
    if not isinstance(pipe, IterableDataset):
        return pipe, shuffle
    from .graph_settings import apply_shuffle_settings

    return apply_shuffle_settings(pipe, shuffle), None


def _check_iterable_options(shuffle: Any, sampler: Any, batch_sampler: Any) -> bool:
    for name, value in (
        ("shuffle", shuffle),
        ("sampler", sampler),
        ("batch_sampler", batch_sampler),
    ):
        if value is not None and not (name == "shuffle" and value is False):
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified "
                f"{name} option, but got {name}={value}"
            )
    return False


class _BaseDataLoaderIter:
    """One pass over a loader."""

    def __init__(self, loader: DataLoader) -> None:
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._collate_fn = loader.collate_fn
        self._sampler_iter = iter(self._index_sampler)
        # Drawn although nothing uses it yet, so that random numbers come as in PyTorch.
        self._base_seed = int(
            taeda.empty((), dtype=taeda.int64).random_(generator=loader.generator).item()
        )
        self._num_yielded = 0
        if loader.pin_memory and not taeda.cuda.is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=4,
            )
        self._pin_memory = loader.pin_memory and taeda.cuda.is_available()

    def __iter__(self) -> Iterator[Any]:
        return self

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        data = self._next_data()
        self._num_yielded += 1
        known = self._IterableDataset_len_called
        if (
            self._dataset_kind == _DatasetKind.Iterable
            and known is not None
            and self._num_yielded > known
        ):
            warnings.warn(
                f"Length of IterableDataset {self._dataset} was reported to be {known}"
                f"(when accessing len(dataloader)), but {self._num_yielded} samples have been "
                "fetched. ",
                stacklevel=2,
            )
        return data

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in the calling process."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._samples: Any = None
        if self._dataset_kind == _DatasetKind.Iterable:
            self._samples = iter(self._dataset)
        self._ended = False

    def _next_data(self) -> Any:
        index = self._next_index()  # may raise StopIteration
        if self._samples is not None:
            data = self._next_of_iterable(index)
        elif self._auto_collation:
            data = self._fetch_batch(index)
        else:
            data = self._dataset[index]
        data = self._collate_fn(data)
        return _pin(data) if self._pin_memory else data

    def _fetch_batch(self, indices: list) -> list:
        fetch_all = getattr(self._dataset, "__getitems__", None)
        if fetch_all:
            return fetch_all(indices)
        return [self._dataset[i] for i in indices]

    def _next_of_iterable(self, index: Any) -> Any:
        if self._ended:
            raise StopIteration
        if not self._auto_collation:
            return next(self._samples)
        data = list(itertools.islice(self._samples, len(index)))
        if len(data) < len(index):
            self._ended = True
        if not data or (self._drop_last and self._ended):
            raise StopIteration
        return data


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """Loads in other processes: not there yet, so that no loader gives one."""

    def __init__(self, loader: DataLoader) -> None:
        raise NotImplementedError(
            "_MultiProcessingDataLoaderIter: there are no worker processes; iterate over the loader"
        )


def _pin(data: Any) -> Any:
    """The tensors of ``data`` in page-locked memory."""
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: _pin(value) for key, value in data.items()}
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(_pin(item) for item in data))
    if isinstance(data, (list, tuple)):
        return [_pin(item) for item in data]
    return data
