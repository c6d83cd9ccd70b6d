"""Operators that only PyTorch's table has: importing this module defines them."""

from . import (  # noqa: F401
    activations,
    aliases,
    arithmetic,
    composites,
    factories,
    losses,
    norms,
    own,
    quantization,
    recurrent,
    shapes,
    windows,
)

from . import outputs  # noqa: E402, F401, I001  # last: forms of what the others define
