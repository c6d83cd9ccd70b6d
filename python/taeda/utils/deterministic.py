"""``torch.utils.deterministic.fill_uninitialized_memory``: whether ``empty`` and its kin fill their
memory while deterministic algorithms are asked for, with NaN or the largest number of the dtype."""

from __future__ import annotations

import sys
from types import ModuleType

from taeda import _functional

__all__: list[str] = []


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        return _functional._deterministic["fill"]

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if not isinstance(mode, bool):
            raise TypeError(f"expected type 'bool', but got type {type(mode)}")
        _functional._deterministic["fill"] = mode
        _functional.use_deterministic_algorithms(
            _functional._deterministic["enabled"], warn_only=_functional._deterministic["warn_only"]
        )


sys.modules[__name__].__class__ = _Deterministic
