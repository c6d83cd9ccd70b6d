"""Copies of a module, one for each device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda.nn.modules.module import Module

from .scatter_gather import _device

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence, detach: bool = False) -> list[Any]:
    """Modules like ``network`` whose parameters are copies on each device: gradients flow back to
    ``network`` unless ``detach``. On the device where they are already, the tensors are shared."""
    return [_copy(network, _device(device), detach, {}) for device in devices]


def _copy(module: Any, device: Any, detach: bool, made: dict) -> Any:
    if id(module) in made:
        return made[id(module)]
    replica = made[id(module)] = module._replicate_for_data_parallel()

    def moved(tensor: Any) -> Any:
        tensor = tensor.to(device)
        return tensor.detach() if detach else tensor

    for name, parameter in module._parameters.items():
        if parameter is not None:
            replica.__dict__[name] = moved(parameter)
    replica._buffers = {n: None if b is None else moved(b) for n, b in module._buffers.items()}
    replica._modules = {
        name: None if child is None else _copy(child, device, detach, made)
        for name, child in module._modules.items()
    }
    return replica
