"""Mixed precision on CUDA by its old names: disabled, for there is no device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taeda import _C, _missing, amp
from taeda.amp._old_names import warn_old_name

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
__path__: list[str] = []  # modules in it: taeda/_missing/aliases.py


class autocast(amp.autocast):
    def __init__(self, enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> None:
        warn_old_name("cuda.amp.autocast", "autocast('cuda', ...)")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_old_name("cuda.amp.GradScaler", "GradScaler('cuda', ...)")
        super().__init__("cuda", *args, **kwargs)


def amp_definitely_not_available() -> bool:
    """Whether no device could compute in mixed precision."""
    return _C._cuda_device_count() == 0


def custom_fwd(fwd: Callable | None = None, *, cast_inputs: Any = None) -> Callable:
    """amp.custom_fwd for device_type='cuda'."""
    warn_old_name("cuda.amp.custom_fwd", "custom_fwd(..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Callable | None = None) -> Callable:
    """amp.custom_bwd for device_type='cuda'."""
    warn_old_name("cuda.amp.custom_bwd", "custom_bwd(..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")


__getattr__, __dir__ = _missing.attributes(__name__)
