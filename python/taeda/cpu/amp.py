"""Mixed precision on the CPU by its old names."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _missing, amp
from taeda.amp._old_names import warn_old_name

__all__ = ["GradScaler", "autocast"]
__path__: list[str] = []  # modules in it: taeda/_missing/aliases.py


class autocast(amp.autocast):
    def __init__(
        self, enabled: bool = True, dtype: Any = taeda.bfloat16, cache_enabled: bool = True
    ) -> None:
        warn_old_name("cpu.amp.autocast", "autocast('cpu', ...)")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_old_name("cpu.amp.GradScaler", "GradScaler('cpu', ...)")
        super().__init__("cpu", *args, **kwargs)


__getattr__, __dir__ = _missing.attributes(__name__)
