"""What a run says: mismatches by operator and aspect, those with a reason apart; and as JSON."""

from __future__ import annotations

import csv
import datetime
import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import torch
from tests.parity.runner import Finding, Results

EXCEPTIONS = Path(__file__).with_name("exceptions.csv")
CLASSES = {"float64": "float", "float32": "float", "bfloat16": "half", "float16": "half", "": ""}


@dataclass(frozen=True)
class Exception_:
    """A mismatch with a reason, and one call in which it shows."""

    operator: str
    aspect: str
    dtype: str
    sample: int
    reason: str


def exceptions() -> list[Exception_]:
    with open(EXCEPTIONS, newline="") as file:
        rows = list(csv.DictReader(file))
    return [Exception_(**(row | {"sample": int(row["sample"])})) for row in rows]


def grouped(findings: list[Finding]) -> dict[tuple[str, str], list[Finding]]:
    groups: dict[tuple[str, str], list[Finding]] = defaultdict(list)
    for finding in findings:
        groups[finding.task.title, finding.aspect].append(finding)
    return dict(sorted(groups.items()))


def reproduction(finding: Finding) -> str:
    parts = [f"python -m tests.parity --only '{finding.task.title}'"]
    if finding.task.dtype:
        parts.append(f"--dtype {finding.task.dtype}")
    if finding.task.cycle:
        parts.append(f"--cycle {finding.task.cycle}")
    return " ".join([*parts, f"--sample {finding.sample} --mode '{finding.mode}'"])


def _print(group: list[Finding]) -> None:
    first = group[0]
    dtypes = " ".join(sorted({finding.task.dtype for finding in group}))
    print(f"{first.task.title} | {first.aspect} | {len(group)} calls, {dtypes}")
    print(f"    {first.text}\n    {reproduction(first)}")


def show(results: Results, show_all: bool, complete: bool) -> int:
    """Prints the findings and the sums; 1 where one has no reason, or a reason no finding though
    the sample in which it shows was reached."""
    reasons = {(item.operator, item.aspect): item for item in exceptions()}
    groups = grouped(results.findings)
    open_groups = {key: group for key, group in groups.items() if key not in reasons}
    texts = [open_groups.pop(key) for key in list(open_groups) if key[1].endswith(" words")]
    for group in texts if show_all else ():
        _print(group)
    for group in (groups if show_all else open_groups).values():
        _print(group)
    due = {
        key
        for key, item in reasons.items()
        if results.reached.get((item.operator, item.dtype), -1) >= item.sample
    }
    stale = sorted(due - groups.keys()) if complete else []
    for operator, aspect in stale:
        print(f"{operator} | {aspect} | has a reason in exceptions.csv and no longer differs")
    by_aspect = Counter(aspect for _, aspect in open_groups)
    for aspect, count in by_aspect.most_common():
        print(f"{count:6d} operators: {aspect}")
    print(
        f"{results.calls} calls, {results.skipped} more that PyTorch does not do; "
        f"{len(open_groups)} mismatches without a reason, {len(groups) - len(open_groups)} with one"
    )
    print(
        f"{sum(map(len, texts))} exceptions of PyTorch's class lack its words (--all prints them)"
    )
    if results.oracle_deaths:
        print(f"PyTorch died in {results.oracle_deaths} calls")
    return int(bool(open_groups or stale))


def _class(dtype: str) -> str:
    if dtype in CLASSES:
        return CLASSES[dtype]
    return "complex" if dtype.startswith("complex") else "integer"


def counts(results: Results) -> dict[str, dict[str, list[int]]]:
    """For each entry and way of calling, [calls, calls that differ]."""
    sums: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(lambda: [0, 0]))
    for (title, mode, dtype), (calls, bad) in sorted(results.counts.items()):
        key = f"{mode}:{_class(dtype)}" if mode == "function" else mode
        sums[title][key][0] += calls
        sums[title][key][1] += bad
    return {title: dict(modes) for title, modes in sums.items()}


def packed(entries: dict[str, dict[str, list[int]]], modes: list[str]) -> dict[str, str]:
    """Counts as text: "0:12 3:4/1" are 12 calls of modes[0], 4 of modes[3] of which 1 differs."""
    return {
        title: " ".join(
            f"{modes.index(mode)}:{made}" + (f"/{bad}" if bad else "")
            for mode, (made, bad) in counted.items()
        )
        for title, counted in sorted(entries.items())
    }


def unpacked(head: dict) -> dict[str, dict[str, list[int]]]:
    """The counts that `packed` wrote."""
    found: dict[str, dict[str, list[int]]] = {}
    for title, text in head["operators"].items():
        parts = (part.split(":") for part in text.split())
        found[title] = {
            head["modes"][int(mode)]: [int(n) for n in (*count.split("/"), "0")[:2]]
            for mode, count in parts
        }
    return found


def corrected(results: Results, before: str) -> str:
    """An earlier JSON after the calls that differed were made again: those that agree now count as
    calls that agree. ValueError where it does not know of so many."""
    old = json.loads(before)
    entries = unpacked(old)
    again = counts(results)
    for title, ways in again.items():
        for way, (made, bad) in ways.items():
            count = entries[title][way]
            count[1] += bad - made
            if count[1] < bad:
                raise ValueError(f"{title}, {way}: {made} calls made again, more than differed")
    words = [row for row in old["mismatches"] if row[1].endswith(" words")]
    kept = [row for row in old["mismatches"] if row[0] not in again]
    found = [[*key, len(group)] for key, group in grouped(results.findings).items()]
    rows = {tuple(row[:2]): row for row in [*words, *kept, *found]}
    old |= {"operators": packed(entries, old["modes"]), "mismatches": sorted(rows.values())}
    return _as_text(old)


def _as_text(head: dict) -> str:
    text = json.dumps(head, separators=(",", ":"))
    return text.replace('","', '",\n"').replace("],[", "],\n[") + "\n"


def compact(results: Results, before: str = "", mode: str = "") -> str:
    """Counts by entry and way of calling, and the mismatches, as JSON. What `before`, an earlier
    JSON, says of other entries, and of ways that the pattern `mode` does not match, is kept."""
    found = [[*key, len(group)] for key, group in grouped(results.findings).items()]
    return _combined(before, counts(results), found, mode)


def merged(before: str, other: str, mode: str) -> str:
    """The JSON `before` with what `other` says of the ways that match `mode`."""
    head = json.loads(other)
    new = {
        title: ways
        for title, counted in unpacked(head).items()
        if (ways := {way: count for way, count in counted.items() if _matches(mode, way)})
    }
    found = [row for row in head["mismatches"] if _matches(mode, row[1].rpartition(" ")[0])]
    return _combined(before, new, found, mode)


def _matches(mode: str, way: str) -> bool:
    return bool(re.fullmatch(mode or ".*", way.partition(":")[0]))


def _combined(before: str, new: dict, found: list[list], mode: str) -> str:
    """JSON of `new` counts and `found` mismatches, and of what `before` says besides."""
    old = json.loads(before) if before else {"modes": [], "operators": {}, "mismatches": []}
    entries = unpacked(old)
    for title, counted in new.items():
        ways = entries.get(title, {})
        entries[title] = {w: n for w, n in ways.items() if not _matches(mode, w)} | counted
    modes = sorted({mode for counted in entries.values() for mode in counted})
    found = found + [
        row
        for row in old["mismatches"]
        if row[0] not in new or not _matches(mode, row[1].rpartition(" ")[0])
    ]
    head = {
        "date": datetime.date.today().isoformat(),
        "pytorch": torch.__version__.split("+")[0],
        "calls": sum(made for counted in entries.values() for made, _ in counted.values()),
        "modes": modes,
        "operators": packed(entries, modes),
        "mismatches": sorted(found),
    }
    return _as_text(head)
