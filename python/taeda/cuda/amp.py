"""Mixed precision on CUDA: disabled, for there is no device."""

from __future__ import annotations

from typing import Any

from taeda import amp

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("cuda", *args, **kwargs)
