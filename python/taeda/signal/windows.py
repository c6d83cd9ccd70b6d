"""Window functions of `M` points, float32 or float64, between 0 and 1.

``sym=True`` gives the symmetric window, for the design of filters; ``sym=False`` the periodic one,
which is the symmetric one of M + 1 points without its last, for spectral analysis. No points are
an empty tensor, one point is 1. ValueError for a negative `M`, another dtype, another layout.

>>> torch.signal.windows.hann(5)
tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from taeda import _C, Tensor, _near_names

_WINDOWS = _C._by_owner["signal.windows"]
globals().update(_WINDOWS)
__all__ = sorted(_WINDOWS)
__path__: list[str] = []  # modules in it: taeda/_missing/aliases.py
__getattr__ = _near_names.of_module(__name__)


@functools.wraps(_WINDOWS["general_cosine"])
def general_cosine(*args: Any, **options: Any) -> Tensor:
    if "a" in options:  # the table takes lists and tuples
        if not isinstance(options["a"], Iterable):
            raise TypeError("Coefficients must be a list/tuple")
        options["a"] = list(options["a"])
    return _WINDOWS["general_cosine"](*args, **options)
