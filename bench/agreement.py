"""How the rows of docs/programs.md agree with PyTorch, counted.

A row's verdict is its cell that begins with one of

    the same | within 3e-07          the program prints PyTorch's numbers
    the first 9; PyTorch ... the first 24    from where the two part, and PyTorch from itself
"""

from __future__ import annotations

import re
from collections import Counter

SAME = re.compile(r"\| (the same|within [^|]*) \|")
PARTED = re.compile(r"\| the first (\d+); PyTorch with \w+ weight changed[^|]*?the first (\d+)")
TOTAL = re.compile(r"^In all, .*?\n\n", re.MULTILINE | re.DOTALL)


def alike(agree: int, other: int) -> bool:
    """Whether the first number apart comes at the soonest half as late as the other one."""
    return 2 * agree >= other


def verdict(row: str) -> str:
    """One of same, soon (parts about as soon as PyTorch from itself), other, not run."""
    if SAME.search(row):
        return "same"
    if parted := PARTED.search(row):
        return "soon" if alike(int(parted[1]), int(parted[2])) else "other"
    return "not run" if re.search(r"\| +\| +\| [^|]+ \|$", row) else "other"


def count(rows: list[str]) -> Counter[str]:
    """How many rows have each verdict."""
    return Counter(map(verdict, rows))


def with_total(page: str) -> str:
    """The page with its sentence about all of its rows, after the first heading."""
    rows = re.findall(r"^\| (?!program \|)[^\n]+ \|$", page, re.MULTILINE)
    found = count(rows)
    ran = len(rows) - found["not run"]
    fine = found["same"] + found["soon"]
    text = f"""\
In all, {fine} of {ran} programs that ran ({100 * fine / max(ran, 1):.1f} %) agree with PyTorch:
{found["same"]} print its numbers, {found["soon"]} part from them about as soon as PyTorch parts
from itself. The rows of the other {found["other"]}, and of {found["not run"]} that were not run,
say why.

"""
    heading, _, rest = TOTAL.sub("", page, count=1).partition("\n\n")
    return f"{heading}\n\n{text}{rest}"
