"""Arguments split over devices, results put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda.utils._pytree import is_namedtuple

__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]


def _split(tensor: Any, devices: Sequence, dim: int) -> list:
    parts = taeda.chunk(tensor, len(devices), dim)
    return [part.to(_device(device)) for part, device in zip(parts, devices)]


def _device(device: Any) -> Any:
    if isinstance(device, int):
        return taeda.device("cpu") if device < 0 else taeda.device("cuda", device)
    return taeda.device(device)


def _same_kind(obj: Any, values: Any) -> Any:
    if is_namedtuple(obj):
        return type(obj)(*values)
    return type(obj)(values)


def scatter(inputs: Any, target_gpus: Sequence, dim: int = 0) -> Any:
    """A list with the arguments for each device: tensors are split along ``dim``, the rest stays
    the same. ``target_gpus`` are indices, or devices such as "cpu"."""
    if isinstance(inputs, taeda.Tensor):
        return _split(inputs, target_gpus, dim)
    if isinstance(inputs, (list, tuple)) and inputs:
        rows = zip(*(scatter(item, target_gpus, dim) for item in inputs))
        return [_same_kind(inputs, row) for row in rows]
    if isinstance(inputs, dict) and inputs:
        rows = zip(*(scatter(item, target_gpus, dim) for item in inputs.items()))
        return [type(inputs)(row) for row in rows]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple, kwargs: dict | None, target_gpus: Sequence, dim: int = 0
) -> tuple[tuple, tuple]:
    """(positional arguments, keyword arguments) for each device."""
    first = scatter(inputs, target_gpus, dim) if inputs else []
    second = scatter(kwargs, target_gpus, dim) if kwargs else []
    longest = max(len(first), len(second))
    first = first + [()] * (longest - len(first))
    second = second + [{}] * (longest - len(second))
    return tuple(first), tuple(second)


def gather(outputs: Sequence, target_device: Any, dim: int = 0) -> Any:
    """The results of all devices on one: tensors are joined along ``dim``."""
    first, device = outputs[0], _device(target_device)
    if isinstance(first, taeda.Tensor):
        tensors = [output.to(device) for output in outputs]
        if first.dim() == 0 and dim == 0:
            return taeda.stack(tensors)
        return taeda.cat(tensors, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if any(len(output) != len(first) for output in outputs):
            raise ValueError("All dicts must have the same number of keys")
        pairs = ((key, gather([o[key] for o in outputs], device, dim)) for key in first)
        return type(first)(pairs)
    return _same_kind(first, [gather(row, device, dim) for row in zip(*outputs)])
