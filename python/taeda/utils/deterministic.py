"""``torch.utils.deterministic.fill_uninitialized_memory``: whether ``empty`` fills its memory with
NaN while deterministic algorithms are asked for. Memory is not filled here, so it cannot be set."""

from __future__ import annotations

import sys
from types import ModuleType

__all__: list[str] = []


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return False

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if mode:
            raise NotImplementedError(
                "fill_uninitialized_memory: memory is not filled; use torch.full(..., math.nan)"
            )


sys.modules[__name__].__class__ = _Deterministic
