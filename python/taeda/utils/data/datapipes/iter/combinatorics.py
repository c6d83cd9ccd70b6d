"""Pipes that change the order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import taeda
from taeda.utils.data.sampler import SequentialSampler

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ["SamplerIterDataPipe", "ShufflerIterDataPipe"]


class SamplerIterDataPipe(IterDataPipe):
    """The indices of a sampler made of ``datapipe``."""

    def __init__(
        self,
        datapipe: Any,
        sampler: Any = SequentialSampler,
        sampler_args: Any = None,
        sampler_kwargs: dict | None = None,
    ) -> None:
        super().__init__()
        kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*(sampler_args or ()), **kwargs)

    def __iter__(self) -> Iterator:
        return iter(self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """Items in the order in which they are drawn from a buffer of ``buffer_size``."""

    def __init__(self, datapipe: Any, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        super().__init__()
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level)
        self.buffer_size = buffer_size
        self._enabled = True
        self._seed: int | None = None

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """False leaves the order."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """The next iteration draws from this seed."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator:
        if not self._enabled:
            yield from self.datapipe
            return
        seed, self._seed = self._seed, None
        if seed is None:
            seed = int(taeda.empty((), dtype=taeda.int64).random_().item())
        draw = random.Random(seed)
        buffer: list[Any] = []
        for item in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(item)
                continue
            at = draw.randint(0, len(buffer) - 1)
            chosen, buffer[at] = buffer[at], item
            yield chosen
        while buffer:
            yield buffer.pop(draw.randint(0, len(buffer) - 1))

    def __len__(self) -> int:
        return len(self.datapipe)
