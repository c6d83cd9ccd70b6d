"""Names for type annotations."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, Any

from taeda._C import Size, Tensor
from taeda._C import device as _device
from taeda._C import dtype as _dtype

Number = int | float | bool
FileLike = str | os.PathLike[str] | IO[bytes]
Device = _device | str | int | None
IntLikeType, FloatLikeType, BoolLikeType = int, float, bool  # no sizes are symbols
_int = int
_float = float
_bool = bool
_size = Size | list[int] | tuple[int, ...]
_TensorOrTensors = Tensor | Sequence[Tensor]
__all__ = ["Device", "FileLike", "Number", "_TensorOrTensors", "_dtype", "_size"]
Storage = Any
