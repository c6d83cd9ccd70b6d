"""Copies of 1 to 24 MB, the yardsticks of bandwidth, and copies that views become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_cases.registry import COPIES, MEGA, Run, kernel, unary


def copy(megabytes: int) -> None:
    def make(torch: Any) -> Run:
        x, y = torch.randn(megabytes, MEGA // 4), torch.empty(megabytes, MEGA // 4)
        return lambda: y.copy_(x)

    COPIES[2 * megabytes * MEGA] = name = f"copy, {megabytes} MB"
    kernel(name, bytes=2 * megabytes * MEGA)(make)


for size in (1, 4, 8, 16, 24):
    copy(size)


def rearranged(name: str, call: Callable[[Any, Any], Any]) -> None:
    unary(f"{name} of 2048 x 2048", 2 * 4 * 2048 * 2048, call)


rearranged("t_copy", lambda torch, x: torch.t_copy(x))
rearranged("view_copy", lambda torch, x: torch.view_copy(x, (-1,)))
rearranged("unfold_copy", lambda torch, x: torch.unfold_copy(x, 1, 8, 8))
rearranged("permute_copy", lambda torch, x: torch.permute_copy(x.view(64, 32, 2048), (2, 0, 1)))
rearranged("slice_scatter", lambda torch, x: torch.slice_scatter(x, x[:1024], 0, 512, 1536))
rearranged("diagonal_scatter", lambda torch, x: torch.diagonal_scatter(x, x[0]))
rearranged("select_scatter", lambda torch, x: torch.select_scatter(x, x[0], 1, 5))
rearranged(
    "as_strided_scatter",
    lambda torch, x: torch.as_strided_scatter(x, x[:1024, :1024], (1024, 1024), (2048, 1)),
)
