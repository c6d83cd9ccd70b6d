"""Mixed precision: present for CUDA programs, which run here in full precision."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

__all__ = ["GradScaler", "autocast", "is_autocast_available"]


def is_autocast_available(device_type: str) -> bool:
    return False


class autocast:
    """Context manager and decorator; on 'cuda' disabled with a warning, as in PyTorch."""

    def __init__(
        self,
        device_type: str,
        dtype: Any = None,
        enabled: bool = True,
        cache_enabled: bool | None = None,
    ) -> None:
        if enabled and device_type == "cuda":
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. Disabling",
                stacklevel=2,
            )
            enabled = False
        if enabled:
            raise NotImplementedError(f"torch.autocast on device type '{device_type}'")
        self.device = device_type

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exc: object) -> None:
        pass

    def __call__(self, function: Callable) -> Callable:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return wrapped


class GradScaler:
    """Loss scaling. Disabled without a CUDA device: losses and steps pass through unchanged."""

    def __init__(
        self, device: str = "cuda", *args: Any, enabled: bool = True, **kwargs: Any
    ) -> None:
        if enabled:
            warnings.warn(
                "torch.amp.GradScaler is enabled, but CUDA is not available.  Disabling.",
                stacklevel=2,
            )

    def is_enabled(self) -> bool:
        return False

    def scale(self, outputs: Any) -> Any:
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing was scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """There is no scale."""

    def get_scale(self) -> float:
        return 1.0

    def state_dict(self) -> dict:
        return {}

    def load_state_dict(self, state_dict: dict) -> None:
        """There is no state."""
