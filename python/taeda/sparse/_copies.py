"""Copies of a sparse tensor's parts: torch.col_indices_copy(x) for x.col_indices()."""

from __future__ import annotations

from typing import Any

from taeda import _C, Tensor


def _copy_of(part: str) -> Any:
    def copy(self: Tensor, *, out: Tensor | None = None) -> Tensor:
        found = getattr(self, part)()
        return found.clone() if out is None else out.resize_as_(found).copy_(found)

    copy.__name__ = copy.__qualname__ = f"{part}_copy"
    copy.__doc__ = f"A copy of ``self.{part}()``."
    return _C._overridable(copy)


ccol_indices_copy = _copy_of("ccol_indices")
col_indices_copy = _copy_of("col_indices")
crow_indices_copy = _copy_of("crow_indices")
indices_copy = _copy_of("indices")
row_indices_copy = _copy_of("row_indices")
values_copy = _copy_of("values")
