"""The table for a terminal: 80 columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import Row, Summary

_WIDTHS = (36, 19, 13, 9)  # layer, shape, parameters, memory; a space between two


def size(count: int) -> str:
    """512 B, 1.5 KiB, 3.0 MiB."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        value /= 1024
        if value < 1023.95 or unit == "TiB":
            break
    return f"{value:.1f} {unit}"


def label(row: Row) -> str:
    """name (Class), and how often it ran where that is not once."""
    text = f"{row.name} ({row.kind})" if row.name else row.kind
    return text + (f" x{row.calls}" if row.calls > 1 else "")


def parameters(row: Row) -> str:
    """The number of parameters, or why there is none; '8 + shared': more in a row further up."""
    if row.again or (row.tied and not row.parameters):
        return "shared"
    if row.tied:
        return f"{row.parameters:,} + shared"
    if row.lazy and not row.parameters:
        return "lazy"
    return f"{row.parameters:,}" if row.parameters else "-"


def totals(summary: Summary) -> list[str]:
    """The lines below the table."""
    lines = [
        f"{summary.parameters:,} parameters, {summary.trainable:,} of them trainable: "
        f"{size(summary.parameter_bytes)}"
    ]
    if summary.buffer_bytes:
        lines.append(f"buffers: {size(summary.buffer_bytes)}")
    if summary.result_bytes:
        lines.append(f"results of the layers: {size(summary.result_bytes)}")
    if any(row.lazy for row in summary.rows):
        lines.append("lazy parameters get their sizes when the model first runs")
    return lines


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _line(cells: tuple[str, str, str, str]) -> str:
    first, second, third, fourth = (_cut(c, w) for c, w in zip(cells, _WIDTHS, strict=True))
    w = _WIDTHS
    return f"{first:<{w[0]}} {second:<{w[1]}} {third:>{w[2]}} {fourth:>{w[3]}}".rstrip()


def table(summary: Summary) -> str:
    """The rows and the totals."""
    rule = "─" * 80
    lines = [_line(("Layer", "Output shape", "Parameters", "Memory")), rule]
    for row in summary.rows:
        memory = size(row.bytes) if row.bytes else "-"
        indented = "  " * row.depth + label(row)
        lines.append(_line((indented, row.shape, parameters(row), memory)))
    return "\n".join([*lines, rule, *totals(summary)])
