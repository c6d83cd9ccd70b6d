"""Switching modes off."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from taeda import _C

__all__ = ["no_dispatch"]


@contextlib.contextmanager
def no_dispatch() -> Iterator[None]:
    """No __torch_dispatch__ sees what the block does."""
    before = _C._exclude_python_key(True)
    try:
        yield
    finally:
        _C._exclude_python_key(before)
