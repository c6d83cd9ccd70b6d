"""Pipes of several others."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ["ConcaterIterDataPipe", "MultiplexerIterDataPipe", "ZipperIterDataPipe"]


class _Several(IterDataPipe):
    def __init__(self, *datapipes: Any) -> None:
        super().__init__()
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes


@functional_datapipe("concat")
class ConcaterIterDataPipe(_Several):
    """One pipe behind the other."""

    def __iter__(self) -> Iterator:
        return chain.from_iterable(self.datapipes)

    def __len__(self) -> int:
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperIterDataPipe(_Several):
    """Tuples of the items of each; ends with the shortest."""

    def __iter__(self) -> Iterator:
        return zip(*self.datapipes)

    def __len__(self) -> int:
        return min(map(len, self.datapipes))


@functional_datapipe("mux")
class MultiplexerIterDataPipe(_Several):
    """An item of each in turn; ends with the shortest."""

    def __iter__(self) -> Iterator:
        return chain.from_iterable(zip(*self.datapipes))

    def __len__(self) -> int:
        return min(map(len, self.datapipes)) * len(self.datapipes)
