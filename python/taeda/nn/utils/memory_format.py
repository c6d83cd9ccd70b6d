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
    """Lays out the weights of all 2-D convolutions of a module, transposed ones among them, in
    ``memory_format``, and returns the module. Their values stay.

    Args:
        module: a convolution, or a model that has some.
        memory_format: ``torch.channels_last`` or ``torch.contiguous_format``.

    >>> conv = torch.nn.Conv2d(8, 4, 3)
    >>> conv = torch.nn.utils.convert_conv2d_weight_memory_format(conv, torch.channels_last)
    >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    _convert(module, (Conv2d, ConvTranspose2d), memory_format)
    return module


def convert_conv3d_weight_memory_format(module: T, memory_format: Any) -> T:
    """Lays out the weights of all 3-D convolutions of a module, transposed ones among them, in
    ``memory_format``, and returns the module. Their values stay.

    Args:
        module: a convolution, or a model that has some.
        memory_format: ``torch.channels_last_3d`` or ``torch.contiguous_format``.

    >>> conv = torch.nn.Conv3d(8, 4, 3)
    >>> conv = torch.nn.utils.convert_conv3d_weight_memory_format(conv, torch.channels_last_3d)
    >>> conv.weight.is_contiguous(memory_format=torch.channels_last_3d)
    True
    """
    _convert(module, (Conv3d, ConvTranspose3d), memory_format)
    return module
