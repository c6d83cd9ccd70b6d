"""Rearrangements between channels and space."""

from __future__ import annotations

from taeda import Tensor
from taeda.nn import functional as F

from .module import Module

__all__ = ["PixelShuffle", "PixelUnshuffle", "ChannelShuffle"]


class PixelShuffle(Module):
    """Channels to resolution: ``(C r^2, H, W)`` to ``(C, H r, W r)``. arXiv 1609.05158

        y[c, h r + i, w r + j] = x[c r^2 + i r + j, h, w]

    Args:
        upscale_factor: r.

    Shape:
        input: ``(*, C r^2, H, W)``.
        output: ``(*, C, H r, W r)``.

    >>> nn.PixelShuffle(2)(torch.arange(4.).view(1, 4, 1, 1))
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """

    __constants__ = ["upscale_factor"]

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Resolution to channels: the inverse of `PixelShuffle`.

    Args:
        downscale_factor: r, which divides height and width.

    Shape:
        input: ``(*, C, H r, W r)``.
        output: ``(*, C r^2, H, W)``.

    >>> nn.PixelUnshuffle(2)(torch.arange(4.).view(1, 1, 2, 2)).flatten()
    tensor([0., 1., 2., 3.])
    """

    __constants__ = ["downscale_factor"]

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Reorders channels so that groups mix. arXiv 1707.01083

    Channels, seen as a matrix of groups by channels of a group, are transposed.

    Args:
        groups: the number of groups, which divides the channels.

    Shape:
        input: ``(N, C, *)``.
        output: the same.

    >>> nn.ChannelShuffle(2)(torch.arange(4.).view(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    __constants__ = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
