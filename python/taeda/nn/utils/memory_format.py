"""Memory formats of convolution weights."""

from __future__ import annotations

from typing import Any, TypeVar

from taeda.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from taeda.nn.modules.module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

T = TypeVar("T", bound=Module)


def _convert(module: Module, kinds: tuple, memory_format: Any) -> None:
    for child in module.modules():
        if isinstance(child, kinds):
            weight = child.weight.detach().clone().contiguous(memory_format=memory_format)
            child.weight.data = weight


def convert_conv2d_weight_memory_format(module: T, memory_format: Any) -> T:
    """Lays out the weights of all 2-D convolutions in ``memory_format``."""
    _convert(module, (Conv2d, ConvTranspose2d), memory_format)
    return module


def convert_conv3d_weight_memory_format(module: T, memory_format: Any) -> T:
    """Lays out the weights of all 3-D convolutions in ``memory_format``."""
    _convert(module, (Conv3d, ConvTranspose3d), memory_format)
    return module
