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
        try:
            return self.collate_fn(data)
        except StopIteration as error:  # which would end the pass without a word
            raise RuntimeError("DataLoader: collate_fn raised StopIteration") from error


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """The next samples of an iterable data set; StopIteration at its end."""

    def __init__(
        self, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> None:
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        try:
            self.dataset_iter = iter(dataset)
        except StopIteration as error:
            name = type(dataset).__name__
            raise RuntimeError(f"DataLoader: {name}.__iter__ raised StopIteration") from error
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
    """The samples at indices. A StopIteration of theirs, which would end the pass without a word
    and lose the rest, becomes a RuntimeError."""

    def fetch(self, possibly_batched_index: Any) -> Any:
        return self._collate(self._load(possibly_batched_index))

    def _load(self, index: Any) -> Any:
        dataset, at = self.dataset, index
        try:
            if not self.auto_collation:
                return dataset[index]
            if getattr(dataset, "__getitems__", None):
                return dataset.__getitems__(index)
            data = []
            for i in self._watched(index):
                at = i
                data.append(dataset[i])
            return data
        except StopIteration as error:
            name = type(dataset).__name__
            raise RuntimeError(
                f"DataLoader: sample {at!r} of {name} raised StopIteration"
            ) from error
