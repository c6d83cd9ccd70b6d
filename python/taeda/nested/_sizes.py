"""The size of a ragged dimension: not a number, but equal for tensors that share their offsets."""

from __future__ import annotations

import itertools
from typing import Any

from taeda import Tensor

_numbers = itertools.count(1)


class RaggedSize:
    """What stands in a nested tensor's shape where each of its tensors has a size of its own."""

    def __init__(self) -> None:
        self._number = next(_numbers)

    def __repr__(self) -> str:
        return f"j{self._number}"

    def __int__(self) -> int:
        raise RuntimeError(f"{self}: a ragged dimension has no size that is a number")

    __index__ = __int__


def ragged_size(source: Tensor) -> RaggedSize:
    """That of all nested tensors with these offsets (or lengths)."""
    size = source.__dict__.get("_ragged_size")
    if size is None:
        size = source._ragged_size = RaggedSize()  # type: ignore[attr-defined]
    return size


class NestedSize(tuple):
    """The shape of a nested tensor; as torch.Size, but for ragged sizes."""

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def __getitem__(self, item: Any) -> Any:
        found = super().__getitem__(item)
        return NestedSize(found) if isinstance(item, slice) else found

    def numel(self) -> int:
        """RuntimeError: a ragged size is no number."""
        raise RuntimeError(f"{self}: a ragged dimension has no size that is a number")
