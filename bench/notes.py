"""Why a row of the benchmark tables misses its target: what a profile shows and what was tried.

The pages print a note below its table as long as a row that it speaks of misses. A note belongs to
the rows whose name its pattern matches as a whole.
"""

from __future__ import annotations

import re

NOTES: dict[str, str] = {
    r"a\.item\(\)": "half of it is Python's call of a method; what is left was not profiled.",
    r"a\[i\]": "0.20 in other runs and at one thread; this one was disturbed by other work.",
}


def note(name: str) -> str:
    """What is known about the row `name`, or that nothing is."""
    found = [text for pattern, text in NOTES.items() if re.fullmatch(pattern, name)]
    return " ".join(found) or "not explained yet."


def below(missed: list[str]) -> str:
    """A list of notes for the rows that miss, each note once."""
    rows: dict[str, list[str]] = {}
    for name in dict.fromkeys(missed):
        rows.setdefault(note(name), []).append(name)
    if not rows:
        return ""
    lines = ["", "Rows that miss their target, and why:", ""]
    return (
        "\n".join(lines + [f"- {'; '.join(names)}: {text}" for text, names in rows.items()]) + "\n"
    )
