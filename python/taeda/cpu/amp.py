"""Mixed precision on the CPU by its old names."""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda import amp

__all__ = ["GradScaler", "autocast"]


def _old(name: str) -> None:
    warnings.warn(
        f"torch.cpu.amp.{name}(...) is deprecated: use torch.amp.{name}('cpu', ...)",
        FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):
    def __init__(
        self, enabled: bool = True, dtype: Any = taeda.bfloat16, cache_enabled: bool = True
    ) -> None:
        _old("autocast")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        _old("GradScaler")
        super().__init__("cpu", *args, **kwargs)
