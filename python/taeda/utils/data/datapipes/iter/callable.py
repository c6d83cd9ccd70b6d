"""Pipes that call a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from taeda.utils.data._utils.collate import default_collate

from ..datapipe import IterDataPipe, functional_datapipe

__all__ = ["CollatorIterDataPipe", "MapperIterDataPipe"]


@functional_datapipe("map")
class MapperIterDataPipe(IterDataPipe):
    """``fn`` of each item; with ``input_col``, of these columns of it, the result put into
    ``output_col`` (by default in their place)."""

    def __init__(
        self, datapipe: Any, fn: Callable, input_col: Any = None, output_col: Any = None
    ) -> None:
        super().__init__()
        if input_col is None and output_col is not None:
            raise ValueError("`output_col` must be None when `input_col` is None.")
        self.datapipe, self.fn = datapipe, fn
        self.input_col, self.output_col = input_col, output_col

    def _apply(self, item: Any) -> Any:
        if self.input_col is None:
            return self.fn(item)
        many = isinstance(self.input_col, (list, tuple))
        columns = self.input_col if many else [self.input_col]
        result = self.fn(*(item[c] for c in columns))
        changed = dict(item) if isinstance(item, dict) else list(item)
        if self.output_col == -1 and isinstance(changed, list):
            changed.append(result)
        elif self.output_col is not None:
            changed[self.output_col] = result
        else:
            changed[columns[0]] = result
            for column in sorted(columns[1:], reverse=True):
                del changed[column]
        return tuple(changed) if isinstance(item, tuple) else changed

    def __iter__(self) -> Iterator:
        return map(self._apply, self.datapipe)

    def __len__(self) -> int:
        return len(self.datapipe)


@functional_datapipe("collate")
class CollatorIterDataPipe(MapperIterDataPipe):
    """Tensors of batches: ``collate_fn`` of each item."""

    def __init__(
        self, datapipe: Any, conversion: Any = None, collate_fn: Callable | None = None
    ) -> None:
        super().__init__(datapipe, conversion or collate_fn or default_collate)
