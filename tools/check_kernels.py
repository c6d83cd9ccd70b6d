"""Checks that kernels of the operator table are called by generated code only.

A kernel may assume its contract (docs/notes/contracts.md), which generated code has checked; a call
from hand-written code would go around it. Prints each offence as file:line and exits 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNEL = re.compile(r"^\s+kernel:\s*([A-Za-z_0-9]+)", re.M)
CALL = re.compile(r"\bcpu::([A-Za-z_0-9]+)\s*\(")


def check(root: Path) -> list[str]:
    kernels: set[str] = set()
    for file in root.glob("ops/*.yaml"):
        kernels.update(KERNEL.findall(file.read_text()))
    found = []
    for file in sorted([*root.glob("src/**/*.cc"), *root.glob("src/**/*.h")]):
        name = file.relative_to(root)
        if name.parts[1] == "kernels":
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            for match in CALL.finditer(line):
                if match[1] in kernels:
                    found.append(f"{name}:{number}: calls the kernel {match[1]} of the table")
    return found


if __name__ == "__main__":
    offences = check(ROOT)
    print("\n".join(offences) or "only generated code calls the table's kernels")
    sys.exit(bool(offences))
