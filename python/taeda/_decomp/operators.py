"""Operators that only PyTorch's table has: importing this module defines them."""

from . import (  # noqa: F401
    activations,
    aliases,
    arithmetic,
    factories,
    losses,
    norms,
    own,
    quantization,
    recurrent,
    shapes,
    windows,
)
