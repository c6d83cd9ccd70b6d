"""A case on a part of its data that stays in the caches: what its arithmetic alone takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

PARTS = 16
LARGE = 1 << 15  # elements from which on a tensor is cut
SIZED = {"randn": 0, "rand": 0, "randint": 2}  # functions, and their arguments before the sizes


class Part:
    """The module `torch` for making a case, but large random tensors have a sixteenth of their
    first dimension. `times` is how often that goes into the whole."""

    def __init__(self, torch: Any) -> None:
        self.torch, self.times = torch, 1.0

    def __getattr__(self, name: str) -> Any:
        call = getattr(self.torch, name)
        return self.smaller(call, SIZED[name]) if name in SIZED else call

    def smaller(self, call: Callable[..., Any], first: int) -> Callable[..., Any]:
        def made(*arguments: Any, **options: Any) -> Any:
            before, sizes = arguments[:first], arguments[first:]
            if len(sizes) == 1 and isinstance(sizes[0], tuple):
                sizes = sizes[0]
            if math.prod(sizes) >= LARGE or sizes[0] >= LARGE // 4:
                rows = max(1, sizes[0] // PARTS)
                self.times = sizes[0] / rows
                sizes = (rows, *sizes[1:])
            return call(*before, sizes, **options)

        return made
