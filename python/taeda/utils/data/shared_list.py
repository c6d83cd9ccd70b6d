"""SharedList: Python objects that workers read without copying the trainer's memory."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import taeda

from .dataset import Dataset

__all__ = ["SharedList"]


class SharedList(Sequence):
    """An immutable sequence that holds its items as bytes, in shared memory.

    Reading an item of a list writes its reference count, so that a forked worker ends up with a
    copy of all items it has read; started in another way, it gets one from the beginning. Here all
    workers read the same bytes. An item is unpickled each time it is read (about a microsecond for
    a small dict): changes of it are not kept.

    Args:
        items: what it holds, each by its pickle.

    >>> import taeda as torch
    >>> rows = torch.utils.data.SharedList({"name": f"row {i}"} for i in range(1000))
    >>> rows[-1], len(rows), rows[2:4]
    ({'name': 'row 999'}, 1000, [{'name': 'row 2'}, {'name': 'row 3'}])
    """

    def __init__(self, items: Iterable[Any]) -> None:
        content, ends = bytearray(), [0]
        for item in items:
            content += pickle.dumps(item, pickle.HIGHEST_PROTOCOL)
            ends.append(len(content))
        self._content = taeda.frombuffer(content or bytearray(1), dtype=taeda.uint8).share_memory_()
        self._ends = taeda.tensor(ends, dtype=taeda.int64).share_memory_()
        self._open()

    @classmethod
    def pack(cls, dataset: Any, at_least: int = 1000) -> Any:
        """A shallow copy of a dataset whose large lists are SharedLists.

        Replaced are attributes that are a ``list`` or ``tuple``, and no class derived of them, with
        ``at_least`` so many items, in the dataset and in datasets that it consists of
        (``Subset``, ``ConcatDataset``). What holds for a SharedList holds for them: items must be
        picklable, each reading gives a new object, so that what is cached in an item is lost, and
        nothing can be appended. The dataset itself is left as it is.

        >>> import taeda as torch
        >>> class Texts(torch.utils.data.Dataset):
        ...     def __init__(self):
        ...         self.texts = [f"text {i}" for i in range(5000)]
        ...     def __len__(self):
        ...         return len(self.texts)
        ...     def __getitem__(self, i):
        ...         return self.texts[i]
        >>> texts = torch.utils.data.SharedList.pack(Texts())
        >>> texts[4999], type(texts.texts).__name__
        ('text 4999', 'SharedList')
        """
        return _pack(dataset, at_least, {})

    def _open(self) -> None:
        self._bytes = memoryview(self._content.untyped_storage())  # type: ignore[arg-type]
        ends = memoryview(self._ends.untyped_storage())  # type: ignore[arg-type]
        self._offsets = ends.cast("q")

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list: ...
    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        try:
            i = operator.index(index)
        except TypeError:
            raise TypeError(
                "SharedList: indices must be integers or slices, not " + type(index).__name__
            ) from None
        n = len(self)
        if not -n <= i < n:
            raise IndexError(f"SharedList: index {i} is out of range for {n} items")
        i %= n
        return pickle.loads(self._bytes[self._offsets[i] : self._offsets[i + 1]])

    def index(self, value: Any, *args: Any) -> int:
        """Where a value stands first; ValueError where it does not."""
        try:
            return super().index(value, *args)
        except ValueError:
            raise ValueError(f"SharedList: {value!r} is not in the list") from None

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getstate__(self) -> tuple:
        return self._content, self._ends

    def __setstate__(self, state: tuple) -> None:
        self._content, self._ends = state
        self._open()

    def __repr__(self) -> str:
        return f"SharedList({len(self)} items, {len(self._bytes):,} bytes)"


def _pack(x: Any, at_least: int, done: dict[int, tuple[Any, Any]]) -> Any:
    """What takes the place of a dataset or an attribute.

    `done` has what was met already by its id, and keeps it, so that ids are not given again.
    """
    if id(x) in done:
        return done[id(x)][1]
    packed = copy.copy(x) if isinstance(x, Dataset) else _pack_items(x, at_least, done)
    done[id(x)] = x, packed
    if isinstance(x, Dataset):
        for name, value in vars(x).items():
            vars(packed)[name] = _pack(value, at_least, done)
    return packed


def _pack_items(x: Any, at_least: int, done: dict[int, tuple[Any, Any]]) -> Any:
    if type(x) not in (list, tuple):
        return x
    if x and all(isinstance(item, Dataset) for item in x):
        return type(x)(_pack(item, at_least, done) for item in x)
    return SharedList(x) if len(x) >= at_least else x
