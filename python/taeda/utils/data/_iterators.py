"""One pass over a DataLoader, and what its state consists of."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator
from time import perf_counter_ns
from typing import Any

import taeda

from . import _utils
from ._state import EpochStart
from .sampler import iter_from

__all__ = ["_BaseDataLoaderIter", "_SingleProcessDataLoaderIter"]


class _DatasetKind:
    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> Any:
        """What loads batches of either kind of dataset."""
        fetch = _utils.fetch
        make = fetch._MapDatasetFetcher if kind == _DatasetKind.Map else (
            fetch._IterableDatasetFetcher
        )  # fmt: skip
        return make(dataset, auto_collation, collate_fn, drop_last)


def distributed_settings() -> tuple[int, int]:
    """(number of processes that train together, which this is)"""
    distributed = sys.modules.get("taeda.distributed")
    if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
        return 1, 0
    return distributed.get_world_size(), distributed.get_rank()


def is_pipe(dataset: Any) -> bool:
    """Whether it is a datapipe."""
    return hasattr(type(dataset), "register_datapipe_as_function")


def _draw(generator: Any) -> int:
    return int(taeda.empty((), dtype=taeda.int64).random_(generator=generator).item())


def warn_of_reading(dataset: Any, samples: int, level: int) -> None:
    """Says that going on takes as long as getting there did, to the caller so many calls up."""
    warnings.warn(
        f"DataLoader.load_state_dict: {type(dataset).__name__} has no state_dict and "
        f"load_state_dict, so that its first {samples} samples are read again to go on after them",
        stacklevel=level,
    )


class _BaseDataLoaderIter:
    """One pass over a loader."""

    def __init__(self, loader: Any) -> None:
        self._epoch_start = EpochStart(loader)
        self._dataset = loader.dataset
        self._dataset_kind = loader._dataset_kind
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        self._auto_collation = loader._auto_collation
        self._drop_last = loader.drop_last
        self._index_sampler = loader._index_sampler
        self._num_workers = loader.num_workers
        self._batch_size = loader.batch_size
        self._world_size, self._rank = distributed_settings()
        self._timeout = loader.timeout
        self._collate_fn = loader.collate_fn
        self._persistent_workers = loader.persistent_workers
        self._shared_seed = self._seed_pipes(loader)
        self._sampler_iter = iter(self._index_sampler)
        self._base_seed = _draw(loader.generator)
        self._num_yielded = 0
        self._finished = False
        self._begin = perf_counter_ns()
        self._end = self._begin
        self._waited_ns = self._bytes = 0
        self._pin_memory = self._should_pin(loader)
        self._record: dict[str, Any] = {}  # what the loader may be asked when this has gone

    def _should_pin(self, loader: Any) -> bool:
        if not loader.pin_memory:
            return False
        if loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the "
                f"device,ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=5,
            )
        if not taeda.cuda.is_available():
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=5,
            )
            return False
        return True

    def _seed_pipes(self, loader: Any) -> int | None:
        """The seed of an iterable pipe's own random numbers, drawn and set."""
        if not is_pipe(self._dataset):
            return None
        from .dataset import IterableDataset

        if not isinstance(self._dataset, IterableDataset):
            return None
        from .graph_settings import apply_random_seed

        seed = _draw(loader.generator)
        generator = taeda.Generator()
        generator.manual_seed(seed)
        self._dataset = apply_random_seed(self._dataset, generator)
        return seed

    def __iter__(self) -> Iterator[Any]:
        return self

    def _reset(self, loader: Any, first_iter: bool = False) -> None:
        self._sampler_iter = iter(self._index_sampler)
        self._num_yielded = 0
        self._finished = False
        self._IterableDataset_len_called = loader._IterableDataset_len_called
        seed = self._seed_pipes(loader)
        if seed is not None:
            self._shared_seed = seed

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def _skip_indices(self, n: int) -> None:
        self._sampler_iter = iter_from(self._index_sampler, n, self._sampler_iter)

    def _next_data(self) -> Any:
        raise NotImplementedError

    def __next__(self) -> Any:
        begin = perf_counter_ns()
        try:
            data = self._next_data()
        except StopIteration:
            self._finished = True
            raise
        self._end = perf_counter_ns()
        self._waited_ns += self._end - begin
        self._num_yielded += 1
        if self._IterableDataset_len_called is not None:
            self._check_length()
        return data

    def _check_length(self) -> None:
        known = self._IterableDataset_len_called
        if self._dataset_kind != _DatasetKind.Iterable or self._num_yielded <= known:
            return
        text = (
            f"Length of IterableDataset {self._dataset} was reported to be {known}"
            f"(when accessing len(dataloader)), but {self._num_yielded} samples have been "
            "fetched. "
        )
        if self._num_workers > 0:
            text += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for "
                "examples."
            )
        warnings.warn(text, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError(f"{type(self).__name__} cannot be pickled")

    def __del__(self) -> None:
        if not sys.is_finalizing() and hasattr(self, "_record"):
            self._record["stats"] = self._stats()
            if self._finished:
                self._record["state"] = {"batches": self._num_yielded, "finished": True}
                return
            with contextlib.suppress(Exception):  # of a data set's own state
                self._record["state"] = self._state()

    # --- going on after an interruption ---

    def _state(self) -> dict[str, Any]:
        """What ``DataLoader.state_dict`` gives in the middle of an epoch, or after it."""
        return {
            "batches": self._num_yielded,
            "finished": self._finished,
            **self._epoch_start.state(),
        }

    # --- where the time goes ---

    def _stats(self) -> dict[str, Any]:
        seconds = max(self._end - self._begin, 1) / 1e9
        return {
            "batches": self._num_yielded,
            "bytes": self._bytes,
            "seconds": seconds,
            "batches_per_second": self._num_yielded / seconds,
            "bytes_per_second": self._bytes / seconds,
            "trainer_waited_seconds": self._waited_ns / 1e9,
            "workers": [],
        }


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """Loads in the calling process."""

    def __init__(self, loader: Any, resume: dict[str, Any] | None = None) -> None:
        super().__init__(loader)
        if is_pipe(self._dataset):
            from .graph_settings import apply_sharding

            apply_sharding(self._dataset, self._world_size, self._rank)
        samples = 0
        if resume is not None:
            if resume.get("dataset") is not None:
                self._dataset.load_state_dict(resume["dataset"])
            else:
                samples = resume["batches"] * (self._batch_size or 1)
            self._skip_indices(resume["batches"])
            self._num_yielded = resume["batches"]
        self._dataset_fetcher = _DatasetKind.create_fetcher(
            self._dataset_kind,
            self._dataset,
            self._auto_collation,
            self._collate_fn,
            self._drop_last,
        )
        if samples and self._dataset_kind == _DatasetKind.Iterable:
            warn_of_reading(self._dataset, samples, 5)
            self._dataset_fetcher.skip(samples)
        if resume is not None and resume.get("ended"):
            self._dataset_fetcher.ended = True

    def __next__(self) -> Any:  # as the base's, with fewer calls
        begin = perf_counter_ns()
        try:
            data = self._dataset_fetcher.fetch(next(self._sampler_iter))
        except StopIteration:
            self._finished = True
            raise
        if self._pin_memory:
            data = _utils.pin_memory.pin_memory(data)
        self._end = end = perf_counter_ns()
        self._waited_ns += end - begin
        self._num_yielded += 1
        if self._IterableDataset_len_called is not None:
            self._check_length()
        return data

    def _next_data(self) -> Any:
        data = self._dataset_fetcher.fetch(next(self._sampler_iter))
        return _utils.pin_memory.pin_memory(data) if self._pin_memory else data

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        if self._dataset_kind == _DatasetKind.Iterable and hasattr(self._dataset, "state_dict"):
            state["dataset"] = self._dataset.state_dict()
            state["ended"] = self._dataset_fetcher.ended
        return state
