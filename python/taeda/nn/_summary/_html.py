"""The table for Jupyter: it takes the notebook's colours, so that it is readable in dark themes."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ._text import label, parameters, size, totals

if TYPE_CHECKING:
    from . import Row, Summary

_TABLE = "border-collapse: collapse; font-size: 0.9em; margin: 0.3em 0"
_CELL = "padding: 0.15em 0.9em 0.15em 0.2em; white-space: nowrap; background: none"
_HEAD = f"{_CELL}; border-bottom: 1px solid currentColor; font-weight: 600"
_NUMBER = "text-align: right; font-variant-numeric: tabular-nums"
_CODE = "font-family: monospace"


def _cell(text: str, style: str = "", tag: str = "td") -> str:
    base = _HEAD if tag == "th" else _CELL
    align = "" if "text-align" in style else "; text-align: left"
    return f'<{tag} style="{base}{align}; {style}">{text}</{tag}>'


def _row(row: Row) -> str:
    name = escape(row.name)
    kind = escape(row.kind)
    shown = f'{name} <span style="opacity: 0.65">{kind}</span>' if name else kind
    times = escape(label(row)).rpartition(" x")[2] if row.calls > 1 else ""
    shown += f" ×{times}" if times else ""
    faded = "; opacity: 0.5" if row.again else ""
    cells = [
        _cell(shown, f"padding-left: {0.2 + 1.2 * row.depth:.1f}em; {_CODE}{faded}"),
        _cell(escape(row.shape), _CODE),
        _cell(escape(parameters(row)), _NUMBER),
        _cell(size(row.bytes) if row.bytes else "-", _NUMBER),
    ]
    return f"<tr>{''.join(cells)}</tr>"


def table(summary: Summary, text: str = "") -> str:
    """The rows and the totals; `text`, the module's repr, to be opened below them."""
    known = any(row.shape for row in summary.rows)
    titles = [("Layer", ""), ("Output shape", "")] + [
        (t, _NUMBER) for t in ("Parameters", "Memory")
    ]
    head = "".join(_cell(title, style, "th") for title, style in titles)
    body = "".join(_row(row) for row in summary.rows)
    notes = totals(summary)
    if not known:
        notes.append("shapes are known after taeda.summary(model, input)")
    below = "<br>".join(escape(line) for line in notes)
    opened = f"<details><summary>repr</summary><pre>{escape(text)}</pre></details>" if text else ""
    return (
        f'<div style="overflow-x: auto"><table style="{_TABLE}"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table>"
        f'<div style="font-size: 0.9em; opacity: 0.8">{below}</div>{opened}</div>'
    )
