"""The table that torch.cuda.memory_summary prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_WIDTH = 75
_POOLS = (
    ("all", "{}"),
    ("large_pool", "      from large pool"),
    ("small_pool", "      from small pool"),
)
_KEYS = ("current", "peak", "allocated", "freed")


def _scaled(value: int, scale: int, step: int, bound: int, units: list[str]) -> tuple[int, str]:
    """A value in the unit that `scale` is readable in."""
    unit = 0
    while scale >= bound and unit + 1 < len(units):
        value //= step
        scale //= step
        unit += 1
    return value, units[unit]


def _bytes(value: int, scale: int) -> str:
    value, unit = _scaled(
        value, scale, 1024, 768 * 1024, ["B  ", "KiB", "MiB", "GiB", "TiB", "PiB"]
    )
    return f"{value:6d} {unit}"


def _count(value: int, scale: int) -> str:
    value, unit = _scaled(value, scale, 1000, 750 * 1000, [" ", "K", "M"])
    return f"{value:7d} {unit} "


_ROWS: tuple[tuple[str, str, Callable[[int, int], str]], ...] = (
    ("allocated_bytes", "Allocated memory", _bytes),
    ("active_bytes", "Active memory", _bytes),
    ("requested_bytes", "Requested memory", _bytes),
    ("reserved_bytes", "GPU reserved memory", _bytes),
    ("inactive_split_bytes", "Non-releasable memory", _bytes),
    ("allocation", "Allocations", _count),
    ("active", "Active allocs", _count),
    ("segment", "GPU reserved segments", _count),
    ("inactive_split", "Non-releasable allocs", _count),
)
_OVERSIZE = (
    ("oversize_allocations", "Oversize allocations"),
    ("oversize_segments", "Oversize GPU segments"),
)


def _row(name: str, cells: list[str]) -> str:
    return f" {name:<21} | " + " | ".join(cells) + " "


def summary(stats: dict[str, Any], device: int, abbreviated: bool) -> str:
    """The counters of `memory_stats` as a table."""
    thin, thick = "-" * _WIDTH, "=" * _WIDTH
    ooms, retries = stats["num_ooms"], stats["num_alloc_retries"]
    lines = [thick, f"{'':18}PyTorch CUDA memory summary, device ID {device:<17d} ", thin]
    lines += [f"{'':12}CUDA OOMs: {ooms:<12d} | {'':6} cudaMalloc retries: {retries:<8d}  ", thick]
    lines.append("        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ")
    for metric, title, shown in _ROWS:
        lines.append(thin)
        scales = [stats[f"{metric}.all.{key}"] for key in _KEYS]
        for pool, name in _POOLS[:1] if abbreviated else _POOLS:
            values = [stats[f"{metric}.{pool}.{key}"] for key in _KEYS]
            cells = [shown(v, s) for v, s in zip(values, scales, strict=True)]
            lines.append(_row(name.format(title), cells))
    for metric, title in _OVERSIZE:
        values = [stats[f"{metric}.{key}"] for key in _KEYS]
        lines += [thin, _row(title, [_count(v, v) for v in values])]
    lines.append(thick)
    return "|" + "|\n|".join(lines) + "|\n"
