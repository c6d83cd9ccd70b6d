"""Which operators a CUDA device runs itself: tests/ops/on_fallback.txt names the others.

The list may only shrink: a line goes when src/kernels/cuda gets the operator's kernel. A new
operator without one adds its line, for the reviewer to see.
"""

import re
from pathlib import Path

from gen import kernels
from gen.table import load

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("on_fallback.txt")
OPS = load(ROOT / "ops")
DECLARED = re.compile(r"^TD_KERNEL\((\w+)\);", re.M)


def golden():
    lines = GOLDEN.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_operators_on_fallback_are_those_of_the_list():
    now, before = (
        {op.ident for op in OPS if op.dispatched and not kernels.is_native(op, "cuda")},
        set(golden()),
    )
    assert now - before == set(), "on fallback, but not in on_fallback.txt"
    assert before - now == set(), "native now: take their lines out of on_fallback.txt"


def test_the_list_is_sorted():
    assert golden() == sorted(set(golden()))


def test_views_never_fall_back():
    assert all(kernels.is_native(op, "cuda") for op in OPS if op.view)


def test_every_kernel_that_an_entry_names_is_declared():
    headers = (ROOT / "src" / "kernels" / "cpu").glob("**/*.h")
    declared = {name for file in headers for name in DECLARED.findall(file.read_text())}
    named = {name for op in OPS for name in op.kernels}
    assert named - declared == set()
    # randperm draws on the host, for any device
    assert declared - named == {"random_permutation"}


def test_a_file_of_the_kernels_name_makes_an_operator_native(tmp_path, monkeypatch):
    softmax = next(op for op in OPS if op.body == "kernel" and not op.host)
    assert not kernels.is_native(softmax, "cuda")
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / f"{softmax.source}.cc").touch()
    monkeypatch.setattr(kernels, "FOLDER", tmp_path)
    assert kernels.is_native(softmax, "cuda")
