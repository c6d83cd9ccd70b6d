"""The benchmark page: one row an idea, marked where it misses its target."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
BENCH = ROOT / "bench"
sys.path.insert(0, str(BENCH))

import families as families_of  # noqa: E402
import kernel_cases  # noqa: E402
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


HEAD = {"date": "2000-01-01", "machine": "m, 2 cores", "versions": {"taeda": "1", "torch": "2"}}


def result(*rows: table.Row) -> dict[str, Any]:
    return HEAD | {"rows": list(rows)}


def test_a_page_marks_what_misses() -> None:
    gpt = row("gpt", 1.2, threads=1, memory_ratio=1.5)
    alexnet = row("alexnet", 1.2, threads=1, memory_ratio=0.5)
    page = table.page({"models": result(gpt, alexnet)})
    assert "| gpt | 1.20 us | 1.00 us | 1.20 |  | **1.50** | 2000-01-01, m |" in page
    assert "| alexnet | 1.20 us | 1.00 us | **1.20** |  | 0.50 | 2000-01-01, m |" in page


def test_a_bar_is_marked_only_where_there_is_one() -> None:
    rows = [row("as bytes", 2.0), row("a batch", 2.0, most=1.5)]
    page = table.page({"processes": result(*rows)})
    assert "| as bytes | 2.00 us | 1.00 us | **2.00** |  |  | 2000-01-01, m |" in page
    assert "| a batch | 2.00 us | 1.00 us | **2.00** |  | **at most 1.5** | 2000-01-01, m |" in page


def test_one_thread_and_two_share_a_row() -> None:
    page = table.page({"tiny": result(row("a + b", 0.1, threads=1), row("a + b", 0.4, threads=2))})
    assert "| `a + b` | 100 ns | 1.00 us | 0.10 | **0.40** | 2000-01-01, m |" in page


def test_kernels_of_a_family_share_a_row_with_the_largest_ratio() -> None:
    rows = [row("relu", r, threads=1) for r in (0.25,)] + [row("gelu", 1.0, threads=1)]
    page = table.page({"kernels": result(*rows, row("gelu", 1.5, threads=2))})
    title = "activations: relu, gelu, dropout"
    assert f"| {title} | 2 | 0.50 | **1.50** | gelu: **1.50** | 2000-01-01, m |" in page


def test_a_page_keeps_the_rows_of_suites_that_were_not_measured() -> None:
    first = table.page(
        {"import": result(row("import: time", 0.1)), "size": result(row("wheel", 2))}
    )
    again = table.page({"size": result(row("wheel", 3.0)) | {"date": "2001-01-01"}}, first)
    assert table.page({}, first) == first
    assert "| import: time | 100 ns | 1.00 us | 0.10 | 2000-01-01, m |" in again
    assert "| wheel | 3.00 us | 1.00 us | 3.00 | 2001-01-01, m |" in again
    assert again.count("| wheel |") == 1


def test_the_readme_shows_eight_rows_of_the_page_and_the_page_is_short() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    assert len(page.splitlines()) <= 160
    assert len(table.summary(page).splitlines()) == 2 + 8
    assert table.summary(page) in (ROOT / "README.md").read_text()
    assert table.page({}, page) == page


def test_every_case_has_a_family_and_every_model_a_target() -> None:
    assert set(run.MODELS + run.BF16_TRAINING) == set(table.MODEL_TARGETS)
    for first, second, _ in kernel_cases.PAIRS.values():
        assert first in kernel_cases.KERNELS and second in kernel_cases.KERNELS
    assert set(numpy_cases.CASES) <= set(kernel_cases.KERNELS)
    shown = [suite for suites, *_ in table.SECTIONS.values() for suite in suites]
    assert sorted(shown) == sorted(run.SUITES)
    families = {families_of.family(name) for name in kernel_cases.KERNELS}
    assert families == set(families_of.FAMILIES)


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
