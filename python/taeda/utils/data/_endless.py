"""Samplers of iterable datasets, which decide only how often to ask."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from .sampler import BatchSampler, Sampler

__all__: list[str] = []


class _InfiniteConstantSampler(Sampler):
    """The sampler of an iterable dataset: it decides only how often to ask."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)

    def _iter_from(self, start: int) -> Iterator[None]:
        return iter(self)


class _ConstantBatchSampler(BatchSampler):
    """Batches of the sampler above, of any size: an iterable dataset may end before they do."""

    def __iter__(self) -> Iterator[Any]:
        return itertools.repeat(range(self.batch_size))  # only its length is read

    def _iter_from(self, start: int) -> Iterator[Any]:
        return iter(self)
