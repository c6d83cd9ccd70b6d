"""Reference implementations: those of torch.nn.functional."""

from __future__ import annotations

from typing import Any

from taeda.nn import functional as _functional


def __getattr__(name: str) -> Any:
    return getattr(_functional, name)


def __dir__() -> list[str]:
    return dir(_functional)
