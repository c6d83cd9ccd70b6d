"""arange and zeros."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import MEGA, Run, kernel


@kernel("arange, 1M int64", bytes=8 * MEGA)
def arange(torch: Any) -> Run:
    return lambda: torch.arange(MEGA)


@kernel("zeros, 16 MB", bytes=16 * MEGA)
def zeros(torch: Any) -> Run:
    return lambda: torch.zeros(2048, 2048)
