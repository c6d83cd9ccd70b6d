"""Tensors as arrays."""

from ._images import make_np

__all__ = ["make_np"]
