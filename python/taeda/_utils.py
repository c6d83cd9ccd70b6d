"""What plain pickles of tensors call, under PyTorch's names: see ``_portable``."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, Tensor

__all__: list[str] = []


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    untyped = storage.untyped()
    return _C._tensor_from_storage(
        untyped, storage.dtype, storage_offset, tuple(size), tuple(stride)
    )


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any = None,
    metadata: Any = None,
) -> Tensor:
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    return tensor.requires_grad_() if requires_grad else tensor


def _rebuild_meta_tensor_no_storage(
    dtype: Any, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    tensor = taeda.empty_strided(tuple(size), tuple(stride), dtype=dtype, device="meta")
    return tensor.requires_grad_(requires_grad)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any = None) -> Tensor:
    return taeda.nn.Parameter(data, requires_grad)


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: dict
) -> Tensor:
    parameter = taeda.nn.Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


def _element_size(dtype: Any) -> int:
    """Bytes of an element."""
    return dtype.itemsize
