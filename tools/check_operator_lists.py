"""Checks that no file lists operators by hand: what is known of operators stands in ops/**/*.yaml.

A file that holds many operator names one after the other, as string literals or as the arguments
of macros (`X(add)`, `REGISTER(mul)`), is a second table that someone would have to keep in step.
Prints each offence and exits 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ["src", "include", "gen", "python", "tools", "bench"]
# A passage of that many different names with hardly anything else between them is a list.
LONGEST = 24
NAME = re.compile(r"^\s*- op:\s*([A-Za-z_0-9]+)", re.M)
MENTION = re.compile(r"""["']([a-z_0-9]+)["']|\b[A-Z_]+\(\s*([a-z_0-9]+)\s*[,)]""")
# At most this many characters may stand between two names of one list.
GAP = 80


def operator_names(root: Path) -> set[str]:
    names: set[str] = set()
    for file in root.glob("ops/**/*.yaml"):
        names.update(NAME.findall(file.read_text()))
    return names


def longest_list(text: str, names: set[str]) -> tuple[int, int]:
    """(how many different operators the longest list in `text` names, the line it starts at)."""
    best, best_line = 0, 0
    run: set[str] = set()
    start = end = 0
    for match in MENTION.finditer(text):
        name = match[1] or match[2]
        if name not in names:
            continue
        if match.start() - end > GAP:
            run, start = set(), match.start()
        run.add(name)
        end = match.end()
        if len(run) > best:
            best, best_line = len(run), text.count("\n", 0, start) + 1
    return best, best_line


def check(root: Path) -> list[str]:
    names = operator_names(root)
    found = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix not in {".cc", ".h", ".py", ".pyi", ".inc"} or not file.is_file():
                continue
            count, line = longest_list(file.read_text(), names)
            if count > LONGEST:
                found.append(f"{file.relative_to(root)}:{line}: lists {count} operators by hand")
    return found


if __name__ == "__main__":
    offences = check(ROOT)
    print("\n".join(offences) or "no file lists operators by hand")
    sys.exit(bool(offences))
