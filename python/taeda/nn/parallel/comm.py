"""Tensors sent to several devices, split over them, added up and put together on one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import Tensor

from ._functions import Scatter
from .scatter_gather import _device
from .scatter_gather import gather as _gather

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _one_of(name: str, devices: Any, out: Any) -> None:
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified in {name}, but got "
            f"devices={devices} and out={out}"
        )


def broadcast(
    tensor: Tensor, devices: Sequence | None = None, *, out: Sequence[Tensor] | None = None
) -> tuple[Tensor, ...]:
    """The tensor on each device, or copied into each of `out`."""
    _one_of("broadcast", devices, out)
    if out is not None:
        return tuple(target.copy_(tensor) for target in out)
    return tuple(tensor.to(_device(device)) for device in devices or ())


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence, buffer_size: int = 10485760
) -> list[tuple[Tensor, ...]]:
    """For each device all tensors; `buffer_size` has no effect."""
    return [tuple(t.to(_device(device)) for t in tensors) for device in devices]


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Tensor:
    """The sum of tensors of one shape, on the first one's device unless another is given."""
    shapes = {tensor.shape for tensor in inputs}
    if len(shapes) != 1:
        raise ValueError(
            f"reduce_add: expected tensors of one shape, got {sorted(map(tuple, shapes))}"
        )
    device = inputs[0].device if destination is None else _device(destination)
    result = inputs[0].to(device, copy=True)
    for tensor in inputs[1:]:
        result += tensor.to(device)
    return result


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """`reduce_add` of the first tensors of all devices, of the second, and so on."""
    return tuple(reduce_add(same, destination) for same in zip(*inputs, strict=True))


def scatter(
    tensor: Tensor,
    devices: Sequence | None = None,
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Sequence[Tensor] | None = None,
) -> tuple[Tensor, ...]:
    """The parts of a tensor along `dim`, each on its device, or copied into `out`."""
    _one_of("scatter", devices, out)
    if out is None:
        return Scatter.apply(devices, chunk_sizes, dim, tensor)
    parts = tensor.split([target.size(dim) for target in out], dim)
    return tuple(target.copy_(part) for target, part in zip(out, parts, strict=True))


def gather(
    tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Any = None
) -> Tensor:
    """The tensors one after the other along `dim`, on one device."""
    result = _gather(tensors, tensors[0].device if destination is None else destination, dim)
    return result if out is None else out.copy_(result)
