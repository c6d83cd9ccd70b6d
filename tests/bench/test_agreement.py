"""Rows of docs/programs.md: what each says of its agreement with PyTorch, and their total."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import agreement

PARTED = "the first {}; PyTorch with one weight changed in its last place the first {}"
PAGE = """# Head

text

| program | numbers | time |
|---|---|---:|
| a: x | within 3e-07 | 1.0 s |
| b: y | v1 | `y.py` | 9 | the same |
| c: z | v1 | `z.py` | 9 | ValueError: the same |
| d: w | v1 |  |  | needs a GPU |
"""


@pytest.mark.parametrize(
    ("cell", "verdict"),
    [("the same", "same"), ("within 3e-07", "same"), ("ValueError: bad", "other"),
     (PARTED.format(9, 18), "soon"), (PARTED.format(9, 19) + ": reason", "other"),
     ("the first 9; nothing", "other")],
)  # fmt: skip
def test_a_row_says_whether_it_agrees(cell: str, verdict: str) -> None:
    assert agreement.verdict(f"| a/b: x | v1 | `x.py` | 20 | {cell} |") == verdict


def test_a_page_counts_the_rows_of_all_its_tables() -> None:
    page = agreement.with_total(PAGE)
    words = page.replace("\n", " ")
    assert words.startswith("# Head  In all, 2 of 3 programs that ran (66.7 %) agree with PyTorch:")
    assert "other 1, and of 1 that were not run, say why.  text " in words
    assert agreement.with_total(page) == page
