"""Samples of a data set, collated."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []


class _BaseDatasetFetcher:
    """Gives batches, or samples where ``auto_collation`` is False, of what a sampler says."""

    progress: Any = None  # a worker's: notes which sample is loaded

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        self.dataset, self.auto_collation = dataset, auto_collation
        self.collate_fn, self.drop_last = collate_fn, drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        raise NotImplementedError

    def _watched(self, indices: Any) -> Any:
        return indices if self.progress is None else self.progress.watch(indices)

    def _collate(self, data: Any) -> Any:
        if self.progress is not None:
            self.progress.collating()
        return self.collate_fn(data)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The next samples of an iterable data set; StopIteration at its end."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self._collate(next(self.dataset_iter))
        data = []
        for _ in self._watched(possibly_batched_index):
            try:
                data.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not data or (self.drop_last and self.ended):
            raise StopIteration
        return self._collate(data)

    def skip(self, samples: int) -> None:
        """Reads samples and drops them."""
        for _ in range(samples):
            if next(self.dataset_iter, self) is self:
                self.ended = True
                return


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """The samples at indices."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        dataset = self.dataset
        if not self.auto_collation:
            return self._collate(dataset[possibly_batched_index])
        if getattr(dataset, "__getitems__", None):
            return self._collate(dataset.__getitems__(possibly_batched_index))
        if self.progress is None:
            return self.collate_fn([dataset[i] for i in possibly_batched_index])
        return self._collate([dataset[i] for i in self._watched(possibly_batched_index)])
