"""Exchange of tensors through DLPack."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

__all__ = ["from_dlpack", "to_dlpack"]


def from_dlpack(ext_tensor: Any, **kwargs: Any) -> Tensor:
    """A tensor on the memory of an object with ``__dlpack__``, or of a capsule."""
    return taeda.from_dlpack(ext_tensor, **kwargs)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule on the tensor's memory, to be taken once."""
    return tensor.__dlpack__()
