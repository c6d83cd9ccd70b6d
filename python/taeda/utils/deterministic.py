"""``torch.utils.deterministic.fill_uninitialized_memory``: whether ``empty`` and its kin fill their
memory while deterministic algorithms are asked for, with NaN or the largest number of the dtype."""

from __future__ import annotations

import sys
from types import ModuleType

from taeda import functional

__all__: list[str] = []


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return functional._deterministic["fill"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"expected type 'bool', but got type {type(mode)}")
        functional._deterministic["fill"] = mode
        functional.use_deterministic_algorithms(
            functional._deterministic["enabled"], warn_only=functional._deterministic["warn_only"]
        )


sys.modules[__name__].__class__ = _Deterministic
