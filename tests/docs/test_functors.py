"""What docs/notes/functors.md lists is there for vectors, numbers and dual numbers."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = {
    cells[1].strip(): cells[2:]
    for line in (ROOT / "docs/notes/functors.md").read_text().splitlines()
    if line.startswith("| ") and len(cells := re.split(r"(?<!\\)\|", line)) > 3
}
FUNCTIONS = sorted(
    name
    for kind, (text, *_) in ROWS.items()
    if kind not in ("kind", "arithmetic", "logic on masks")
    for code in re.findall(r"`([^`]*)`", text)
    for name in re.findall(r"\b[a-z_0-9]{3,}\b", re.sub(r"\(.*\)", "", code))
)


def defined(*files):
    text = "".join((ROOT / "src/kernels" / file).read_text() for file in files)
    plain = re.findall(r"TD_FN (?:\w+(?:<[^>]*>+)?(?:::\w+)? )?(\w+)\(", text)
    return {
        *plain,
        *re.findall(r"TD_LANE_\w+\((\w+)", text),
        *re.findall(r"(\w+)\(Lane<T> x", text),
    }


@pytest.mark.parametrize(
    "files",
    [
        ["cpu/simd/simd.h", "cpu/simd/simd_math-inl.h", "pointwise/dual.h"],
        ["cpu/simd/lane.h", "cpu/simd/lane_integer.h", "pointwise/dual.h"],
    ],
    ids=["vectors", "numbers"],
)
def test_listed_functions_exist(files):
    assert len(FUNCTIONS) > 50
    assert set(FUNCTIONS) - defined(*files) == set()
