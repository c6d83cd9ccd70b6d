"""Operators that only PyTorch's table has: importing this module defines them."""

# Those that the package defines elsewhere come first.
import taeda._functions.indices
import taeda._library.aten  # noqa: F401

from . import (  # noqa: F401
    activations,
    aliases,
    arithmetic,
    factories,
    losses,
    norms,
    own,
    recurrent,
    shapes,
    windows,
)
