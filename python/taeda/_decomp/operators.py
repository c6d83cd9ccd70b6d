"""Operators that only PyTorch's table has: importing this module defines them."""

from . import (  # noqa: F401
    activations,
    aliases,
    arithmetic,
    composites,
    factories,
    internals,
    losses,
    norms,
    outputs,
    own,
    quantization,
    recurrent,
    shapes,
    windows,
)
