"""Splitting and joining as functions with ``apply``."""

from __future__ import annotations

from typing import Any

from .scatter_gather import _split, gather

__all__ = ["Gather", "Scatter"]


class Scatter:
    """``Scatter.apply(devices, sizes, dim, tensor)``: the parts of a tensor on each device."""

    @staticmethod
    def apply(target_gpus: Any, chunk_sizes: Any, dim: int, input: Any) -> tuple:
        if chunk_sizes is None:
            return tuple(_split(input, target_gpus, dim))
        parts = input.split(list(chunk_sizes), dim)
        return tuple(gather([p], d, dim) for p, d in zip(parts, target_gpus))


class Gather:
    """``Gather.apply(device, dim, *tensors)``: tensors of several devices joined on one."""

    @staticmethod
    def apply(target_device: Any, dim: int, *inputs: Any) -> Any:
        return gather(inputs, target_device, dim)
