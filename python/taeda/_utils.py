"""Functions that pickled tensors name. Their addresses are part of the file format."""

from __future__ import annotations

from typing import Any

import taeda

__all__: list[str] = []


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Any:
    return taeda.empty((0,), dtype=storage.dtype).set_(
        storage._untyped_storage, storage_offset, size, stride
    )


def _rebuild_parameter(data: Any, requires_grad: bool, backward_hooks: Any) -> Any:
    param = taeda.nn.Parameter(data, requires_grad)
    param._backward_hooks = backward_hooks
    return param
