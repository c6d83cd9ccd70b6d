"""Shapes as tensors, which exported models compute with."""

from __future__ import annotations

from typing import Any

import taeda


def shape_as_tensor(x: Any) -> taeda.Tensor:
    """The sizes of a tensor."""
    return taeda.tensor(x.shape)


def reshape_from_tensor_shape(x: taeda.Tensor, shape: taeda.Tensor) -> taeda.Tensor:
    """`x` with the sizes that a tensor holds."""
    return x.reshape(shape.tolist())
