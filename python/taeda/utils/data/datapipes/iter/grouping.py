"""Pipes that group, choose and begin."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = [
    "BatcherIterDataPipe",
    "FilterIterDataPipe",
    "GrouperIterDataPipe",
    "IterableWrapperIterDataPipe",
    "ShardingFilterIterDataPipe",
    "UnBatcherIterDataPipe",
]


class IterableWrapperIterDataPipe(IterDataPipe):
    """The items of an iterable, of a copy of it by default."""

    def __init__(self, iterable: Any, deepcopy: bool = True) -> None:
        super().__init__()
        self.iterable, self.deepcopy = iterable, deepcopy

    def __iter__(self) -> Iterator:
        return iter(copy.deepcopy(self.iterable) if self.deepcopy else self.iterable)

    def __len__(self) -> int:
        return len(self.iterable)


@functional_datapipe("filter")
class FilterIterDataPipe(IterDataPipe):
    """The items for which ``filter_fn`` (of a column, if given) is true."""

    def __init__(self, datapipe: Any, filter_fn: Callable, input_col: Any = None) -> None:
        super().__init__()
        self.datapipe, self.filter_fn, self.input_col = datapipe, filter_fn, input_col

    def __iter__(self) -> Iterator:
        for item in self.datapipe:
            if self.filter_fn(item if self.input_col is None else item[self.input_col]):
                yield item


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Lists of ``batch_size`` items; the last may be shorter unless ``drop_last``."""

    def __init__(
        self, datapipe: Any, batch_size: int, drop_last: bool = False, wrapper_class: Any = list
    ) -> None:
        super().__init__()
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self) -> Iterator:
        batch: list = []
        for item in self.datapipe:
            batch.append(item)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self) -> int:
        extra = 0 if self.drop_last else self.batch_size - 1
        return (len(self.datapipe) + extra) // self.batch_size


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The items of items, ``unbatch_level`` levels down; -1 for all."""

    def __init__(self, datapipe: Any, unbatch_level: int = 1) -> None:
        super().__init__()
        if unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def _items(self, item: Any, level: int) -> Iterator:
        if level == 0 or (level < 0 and not isinstance(item, list)):
            yield item
            return
        for inner in item:
            yield from self._items(inner, level - 1)

    def __iter__(self) -> Iterator:
        for item in self.datapipe:
            yield from self._items(item, self.unbatch_level)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of items with the same ``group_key_fn``; of ``group_size`` where that is given, what
    is left at the end in the order of the keys."""

    def __init__(
        self,
        datapipe: Any,
        group_key_fn: Callable,
        *,
        keep_key: bool = False,
        group_size: int | None = None,
        drop_remaining: bool = False,
    ) -> None:
        super().__init__()
        self.datapipe, self.group_key_fn, self.keep_key = datapipe, group_key_fn, keep_key
        self.group_size, self.drop_remaining = group_size, drop_remaining

    def __iter__(self) -> Iterator:
        groups: dict[Any, list] = {}
        for item in self.datapipe:
            key = self.group_key_fn(item)
            group = groups.setdefault(key, [])
            group.append(item)
            if len(group) == self.group_size:
                del groups[key]
                yield (key, group) if self.keep_key else group
        for key, group in groups.items():
            if not self.drop_remaining:
                yield (key, group) if self.keep_key else group


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th item, for n readers, of which ``apply_sharding`` says the number of this one."""

    def __init__(self, source_datapipe: Any, sharding_group_filter: Any = None) -> None:
        super().__init__()
        self.source_datapipe = source_datapipe
        self.num_of_instances, self.instance_id = 1, 0

    def apply_sharding(self, num_of_instances: int, instance_id: int, *_: Any) -> None:
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances"
                f"({num_of_instances})"
            )
        self.num_of_instances, self.instance_id = num_of_instances, instance_id

    def __iter__(self) -> Iterator:
        for i, item in enumerate(self.source_datapipe):
            if i % self.num_of_instances == self.instance_id:
                yield item

    def __len__(self) -> int:
        whole, rest = divmod(len(self.source_datapipe), self.num_of_instances)
        return whole + (self.instance_id < rest)
