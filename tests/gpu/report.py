"""The page of a run on a card: docs/gpu/DATE-CARD.md."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

from tests.gpu.rows import FAILED, NOT_MEASURED, PASSED, SKIPPED

OUTCOMES = (PASSED, FAILED, SKIPPED, NOT_MEASURED)


def counts(rows: list[dict[str, Any]]) -> str:
    found = Counter(row["outcome"] for row in rows)
    shown = [outcome for outcome in OUTCOMES if found[outcome] or outcome != NOT_MEASURED]
    return ", ".join(f"{found[outcome]} {outcome}" for outcome in shown)


def by_part(rows: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """How many of each part's rows had which outcome."""
    found: dict[str, dict[str, int]] = {}
    for row in rows:
        found.setdefault(row["part"], dict.fromkeys(OUTCOMES, 0))[row["outcome"]] += 1
    return found


def summary(report: dict[str, Any]) -> str:
    """The last line of a run, with the reason where all of it was skipped."""
    why = f": {report['skipped']}" if report["skipped"] else ""
    return counts(report["rows"]) + why


def table(head: list[str], rows: list[list[Any]]) -> list[str]:
    cells = [[str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *cells]
    return [*(f"| {' | '.join(line)} |" for line in lines), ""]


def value_of(row: dict[str, Any]) -> str:
    return "-" if row["value"] is None else f"{row['value']:.4g} {row['unit']}"


def measured(rows: list[dict[str, Any]]) -> list[str]:
    found = [
        [r["name"], value_of(r), r["bar"], r["outcome"], r["detail"]] for r in rows if r.get("unit")
    ]
    return table(["measured", "value", "bar", "", "the bar is"], found) if found else []


def text(report: dict[str, Any]) -> str:
    rows = report["rows"]
    title = "the simulated driver" if report["simulated"] else report["card"]
    lines = [
        f"# {report['date']}: {title}",
        "",
        f"Card: {report['card']}, compute capability {report['compute_capability']}, "
        f"{report['memory_gib']} GiB. Driver: {report['driver']}. taeda {report['taeda']}.",
        "Made by `python tests/gpu/run.py --report docs/gpu`.",
        "",
    ]
    if report["simulated"]:
        lines += ["Nothing here ran on a card, and no time was measured.", ""]
    parts = {row["part"]: [r for r in rows if r["part"] == row["part"]] for row in rows}
    lines += table(["part", "rows"], [[part, counts(of)] for part, of in parts.items()])
    lines += measured(rows)
    for outcome in (FAILED, SKIPPED):
        found = [r for r in rows if r["outcome"] == outcome]
        if not found:
            continue
        lines += [f"## {outcome.capitalize()}", ""]
        reasons: dict[str, list[str]] = {}
        for row in found:
            reasons.setdefault(row["detail"], []).append(f"{row['part']}: {row['name']}")
        lines += [f"- {', '.join(names)}: {why}" for why, names in reasons.items()]
        lines.append("")
    others = [r for r in rows if r["part"] in ("kernels", "traces", "graphs", "figures")]
    lines += [f"- {r['name']}: {r['detail']}" for r in others if r["outcome"] == PASSED]
    return "\n".join(lines).rstrip() + "\n"


def stem(report: dict[str, Any]) -> str:
    """DATE-CARD, of the page's name and of its pictures'."""
    card = re.sub(r"[^a-z0-9]+", "-", report["card"].lower()).strip("-")
    return f"{report['date']}-{card}"


def page(report: dict[str, Any], folder: Path) -> Path:
    """Writes it; where."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem(report)}.md"
    path.write_text(text(report))
    return path
