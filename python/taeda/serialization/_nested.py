"""Nested tensors in files that nobody vouches for: their parts are checked before they are used."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.serialization._rebuild import _flag

_PARTS = {"values", "offsets", "lengths", "_ragged_idx", "_metadata_cache", "requires_grad"}


def _fail(what: str) -> None:
    from pickle import UnpicklingError

    raise UnpicklingError(f"load: a nested tensor has {what}")


def _indices(t: Any, what: str) -> Tensor:
    """A row of integers."""
    if not isinstance(t, Tensor) or t.layout is not taeda.strided or t.dim() != 1:
        _fail(f"{what} that are not a row of numbers")
    if t.dtype not in (taeda.int64, taeda.int32):
        _fail(f"{what} of dtype {t.dtype}")
    return t


def jagged(parts: Any) -> Tensor:
    """_rebuild_njt: UnpicklingError unless the offsets lie within the values."""
    if type(parts) is not dict or not {"values", "offsets"} <= parts.keys() <= _PARTS:
        _fail("other parts than values, offsets and lengths")
    values, offsets, ragged = parts["values"], parts["offsets"], parts.get("_ragged_idx", 1)
    if not isinstance(values, Tensor) or values.layout is not taeda.strided:
        _fail("values that are no strided tensor")
    if type(ragged) is not int or not 1 <= ragged <= values.dim():
        _fail(f"no dimension {ragged}")
    length = values.shape[ragged - 1]
    _indices(offsets, "offsets")
    if len(offsets) == 0 or offsets[0] < 0 or (offsets.diff() < 0).any() or offsets[-1] > length:
        _fail("offsets that are not in the values")
    lengths = parts.get("lengths")
    if lengths is not None:
        _indices(lengths, "lengths")
        if lengths.shape != offsets[1:].shape or (lengths < 0).any():
            _fail("lengths that do not go with its offsets")
        if (offsets[:-1] + lengths > length).any():
            _fail("lengths that are not in the values")
    from taeda.nested._tensor import NestedTensor

    grad = _flag(parts.get("requires_grad", False))
    return NestedTensor(values, offsets, lengths=lengths, _ragged_idx=ragged, requires_grad=grad)


def strided(buffer: Any, sizes: Any, strides: Any, offsets: Any) -> Tensor:
    """_rebuild_nested_tensor: a tensor for each row of `sizes` and `strides` of a flat buffer."""
    from taeda.nested._strided import StridedNestedTensor
    from taeda.serialization._rebuild import check_layout

    if not isinstance(buffer, Tensor) or buffer.dim() != 1 or not buffer.is_contiguous():
        _fail("a buffer that is not flat")
    for rows in (sizes, strides):
        if not isinstance(rows, Tensor) or rows.dim() not in (1, 2) or rows.dtype != taeda.int64:
            _fail("sizes that are not rows of integers")
    _indices(offsets, "offsets")
    if not len(sizes) == len(strides) == len(offsets):
        _fail("sizes, strides and offsets of different numbers of tensors")
    parts = []
    rows = zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True)
    for size, stride, offset in rows if sizes.dim() == 2 else ():
        check_layout(buffer.nbytes, buffer.itemsize, offset, size, stride, "load")
        parts.append(buffer.as_strided(size, stride, offset))
    return StridedNestedTensor(parts)
