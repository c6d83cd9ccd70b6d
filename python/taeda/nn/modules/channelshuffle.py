"""ChannelShuffle, at the address where PyTorch has it."""

from .pixelshuffle import ChannelShuffle

__all__ = ["ChannelShuffle"]
