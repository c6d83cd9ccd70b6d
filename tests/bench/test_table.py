"""The benchmark page marks what misses its target, and says why."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))

import cases  # noqa: E402
import kernel_cases  # noqa: E402
import notes  # noqa: E402
import numpy_cases  # noqa: E402
import profile_kernels  # noqa: E402
import run  # noqa: E402
import table  # noqa: E402

COPY = next(iter(kernel_cases.COPIES.values()))


def row(name: str, ratio: float, **more: Any) -> table.Row:
    return {"name": name, "unit": "us", "taeda": ratio, "torch": 1.0, "ratio": ratio} | more


def test_rows_miss_by_their_ratio_or_by_their_share_of_the_limit() -> None:
    assert not table.misses("kernels", row(COPY, 1.0, limit=0.8))
    assert table.misses("kernels", row(COPY, 1.02, limit=1.0))
    assert table.misses("kernels", row(COPY, 0.5, limit=0.7))
    assert table.misses("kernels", row(COPY, 0.5, limit=0.7, arithmetic=0.79))
    assert not table.misses("kernels", row(COPY, 0.5, limit=0.1, arithmetic=0.8))
    assert table.misses("kernels", row(COPY, 1.1, limit=0.1, arithmetic=0.8))
    assert not table.misses("kernels", row("bmm, 64 x 128 x 128", 0.9, limit=0.7))
    assert table.misses("kernels", row(COPY, 0.9, limit=1.0, numpy=0.8))
    assert not table.misses("kernels", row(COPY, 0.9, limit=1.0, numpy=1.0))
    assert table.misses("tiny", row("a + b", 0.36)) and not table.misses("tiny", row("a", 0.35))
    assert table.misses("models", row("gpt", 1.14)) and not table.misses("models", row("gpt", 1.15))
    gpt = row("gpt", 1.2, memory_ratio=0.9, faults={"taeda": 9, "torch": 9})
    assert not table.misses("models", gpt)
    assert table.misses("models", gpt | {"memory_ratio": 1.1})
    assert table.misses("models", gpt | {"faults": {"taeda": 900, "torch": 9}})
    assert table.misses("memory", {"taeda": 1.2, "most": 1.1})
    assert not table.misses("memory", {"taeda": 1.0, "most": 1.1})
    assert table.misses("threads", {"taeda": 20, "least": 21})


def test_a_page_marks_and_explains_what_misses(monkeypatch: Any) -> None:
    monkeypatch.setattr(notes, "NOTES", {"co.*": "the reason."})
    versions = {"taeda": "1", "torch": "2"}
    head = {"date": "2000-01-01", "machine": "m", "versions": versions}
    kernels = [row(COPY, 0.5, limit=0.5, threads=1), row("relu", 1.5, limit=1.0, threads=1)]
    gpt = row("gpt", 1.2, threads=1, memory_ratio=0.5, faults={"taeda": 0, "torch": 9})
    ncf = row("ncf", 1.2, threads=1, memory_ratio=0.5)
    page = table.page({"kernels": head | {"rows": kernels}, "models": head | {"rows": [gpt, ncf]}})
    assert f"- {COPY}: the reason." in page and "- relu; ncf" not in page
    assert "| **50%** |" in page and "**1.50** (target 1)" in page and "| 0, 9 |" in page
    assert "- ncf: not explained yet." in page and "- gpt" not in page
    assert "| geometric mean | 1 | | | **1.20** | 1.4 |" in page


def test_every_model_has_its_facts_and_every_note_speaks_of_a_row() -> None:
    assert set(run.MODELS) == set(table.MFLOP) | set(table.WEIGHTS)
    assert set(run.MODELS + run.BF16_TRAINING) == set(table.MODEL_TARGETS)
    for first, second, _ in kernel_cases.PAIRS.values():
        assert first in kernel_cases.KERNELS and second in kernel_cases.KERNELS
    assert set(numpy_cases.CASES) <= set(kernel_cases.KERNELS)
    assert set(run.SUITES) == set(table.TITLES)
    rows = [
        *run.MODELS,
        *run.BF16_TRAINING,
        *kernel_cases.PAIRS,
        *(name for suite in cases.CASES.values() for name in suite),
    ]
    for pattern in notes.NOTES:
        assert any(re.fullmatch(pattern, name) for name in rows), pattern


def test_every_recorded_row_that_misses_is_explained() -> None:
    results = json.loads((ROOT / "docs" / "benchmarks.json").read_text())
    for suite, result in results.items():
        missed = {r["name"] for r in result["rows"] if "error" in r or table.misses(suite, r)}
        assert [n for n in missed if notes.note(n) == "not explained yet."] == [], suite
    profiles = (ROOT / "docs" / "notes" / "kernel-profiles.md").read_text()
    missed = profile_kernels.missing(results["kernels"]["rows"])
    assert [row for row in missed if f"| {row[0]} | {row[1]} |" not in profiles] == []


@pytest.mark.parametrize(
    ("library", "function", "shown"),
    [
        ("libtaeda.so", "void taeda::cpu::lanes::dense<taeda::Load_exp, float, 1>(long)", "`exp`"),
        ("libtaeda.so", "cpu::(anonymous namespace)::add_rows(float*) [clone .cold]", "`add_rows`"),
        ("libtaeda.so", "taeda::Sum<float, 4>::operator()(long) const", "`Sum::operator`"),
        ("libc.so.6", "__memmove_avx512_unaligned_erms", "`__memmove_avx512_unaligned_erms`"),
        ("[JIT] tid 12", "0x00007f", "oneDNN"),
        ("libscipy_openblas.so", "sgemm_kernel", "OpenBLAS"),
        ("[kernel.kallsyms]", "clear_page", "the system"),
        ("libpython3.11.so", "_PyEval", "Python"),
    ],
)  # fmt: skip
def test_profiles_name_functions_without_their_types(
    library: str, function: str, shown: str
) -> None:
    assert profile_kernels.plain(library, function) == shown
