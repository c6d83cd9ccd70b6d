"""The profiler's table as text."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_SPACE = "  "  # behind every column
_NUMBERS = 12  # the width of columns of numbers
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")


def format_time(time_us: float, unit: str | None = None) -> str:
    """1500.0 -> "1.500ms", or in a given unit."""
    chosen = unit or ("s" if time_us >= 1e6 else "ms" if time_us >= 1e3 else "us")
    return f"{time_us / _UNITS[chosen]:.3f}{chosen}"


def _format_memory(nbytes: int) -> str:
    """1600 -> "1.56 KB"."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(nbytes) >= size:
            return f"{nbytes / size:.2f} {unit}"
    return f"{nbytes} B"


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "NaN"


class _Column(NamedTuple):
    title: str
    width: int
    text: Callable[[Any], str]
    align: str = ">"


def _wide(texts: Any, most: int) -> int:
    return min(max((len(text) for text in texts), default=0) + 4, most)


def _start(text: str, most: int) -> str:
    return text[: most - 3] + "..." if len(text) >= most - 3 else text


def _end(text: str, width: int) -> str:
    return "..." + text[len(text) - width + 3 :] if len(text) > width > 3 else text


def _flops_column(rows: list) -> list[_Column]:
    known = [row.flops for row in rows if row.flops]
    if not known:
        return []
    power = max(0, min(int(math.log10(min(known)) / 3), len(_FLOPS) - 1))
    scale = 1000.0**-power
    return [
        _Column(
            f"Total {_FLOPS[power]}",
            _NUMBERS,
            lambda e: f"{e.flops * scale:8.3f}" if e.flops else "--",
        )
    ]


def _columns(
    rows: list,
    total: float,
    widths: tuple,
    with_flops: bool,
    with_memory: bool,
    unit: str | None,
) -> list[_Column]:
    max_name, max_source, max_shapes = widths

    def time(attribute: str) -> Callable[[Any], str]:
        return lambda e: format_time(getattr(e, attribute), unit)

    name = _wide([e.key for e in rows], max_name)
    columns = [
        _Column("Name", name, lambda e: _start(e.key, max_name)),
        _Column("Self CPU %", _NUMBERS, lambda e: _share(e.self_cpu_time_total, total)),
        _Column("Self CPU", _NUMBERS, time("self_cpu_time_total")),
        _Column("CPU total %", _NUMBERS, lambda e: _share(e.cpu_time_total, total)),
        _Column("CPU total", _NUMBERS, time("cpu_time_total")),
        _Column("CPU time avg", _NUMBERS, time("cpu_time")),
    ]
    if with_memory:
        columns += [
            _Column("CPU Mem", _NUMBERS, lambda e: _format_memory(e.cpu_memory_usage)),
            _Column("Self CPU Mem", _NUMBERS, lambda e: _format_memory(e.self_cpu_memory_usage)),
        ]
    columns.append(_Column("# of Calls", _NUMBERS, lambda e: str(e.count)))
    if any(e.input_shapes for e in rows):
        shapes = _wide([str(e.input_shapes) for e in rows], max_shapes)
        columns.append(_Column("Input Shapes", shapes, lambda e: str(e.input_shapes)[:shapes]))
    if any(e.stack for e in rows):
        source = _wide([frame for e in rows for frame in e.stack], max_source)
        text = lambda e: _end(e.stack[0], source) if e.stack else ""  # noqa: E731
        columns.append(_Column("Source Location", source, text, "<"))
    return columns + (_flops_column(rows) if with_flops else [])


def build_table(
    events: list,
    *,
    sort_by: str | None,
    row_limit: int,
    header: str | None,
    top_level_only: bool,
    time_unit: str | None,
    widths: tuple,
    with_flops: bool,
    with_memory: bool,
) -> str:
    """The table that ``EventList.table`` gives; ``widths`` are the most that names, source
    locations and shapes take."""
    if not events:
        return ""
    rows = list(events)
    if sort_by is not None:
        key = sort_by.replace("cuda", "device").replace("xpu", "device")
        rows.sort(key=lambda e: getattr(e, key), reverse=True)
    total = sum(e.self_cpu_time_total for e in events)
    columns = _columns(rows, total, widths, with_flops, with_memory, time_unit)
    line = "".join("-" * column.width + _SPACE for column in columns)

    def row(texts: Any) -> str:
        cells = (f"{text:{c.align}{c.width}}" for text, c in zip(texts, columns))
        return "".join(cell + _SPACE for cell in cells)

    shown = [e for e in rows if not (top_level_only and e.cpu_parent is not None)]
    shown = shown if row_limit < 0 else shown[:row_limit]
    double = "=" * (len(line) - len(_SPACE))
    lines = [] if header is None else [double, header]
    lines += [double, "This report only display top-level ops statistics"] if top_level_only else []
    lines += [line, row([column.title for column in columns]), line]
    for e in shown:
        lines.append(row([column.text(e) for column in columns]))
        if any(c.title == "Source Location" for c in columns):
            lines.append(row([""] * len(columns)))
    lines += [line, f"Self CPU time total: {format_time(total, time_unit)}", ""]
    return "\n".join(lines)
