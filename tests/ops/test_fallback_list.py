"""Which operators a CUDA device runs itself: tests/ops/on_fallback.txt names the others.

The list may only shrink: a line goes when src/kernels/cuda gets the operator's kernel, and COUNT
with it. A new operator without one says why in its entry, `test: {on_fallback: ...}`, until it has.
"""

import re
from pathlib import Path

from gen import device
from gen.device import is_native
from gen.table import load

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("on_fallback.txt")
OPS = load(ROOT / "ops")
COUNT = 25  # lines of the list: never raised
DECLARED = re.compile(r"^TD_KERNEL\((\w+)\);", re.M)


def golden():
    lines = GOLDEN.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def on_fallback():
    return {op.ident for op in OPS if op.dispatched and not is_native(op, "cuda")}


def marked():
    return {op.ident for op in OPS if "on_fallback" in op.test}


def test_operators_on_fallback_are_in_the_list_or_give_a_reason():
    left = on_fallback() - marked() - set(golden())
    assert not left, "on fallback: give src/kernels/cuda a kernel, or a new operator the mark"


def test_what_is_native_is_neither_listed_nor_marked():
    native = (marked() | set(golden())) - on_fallback()
    assert not native, "native now: take out their lines and marks, and lower COUNT"


def test_the_list_does_not_grow():
    assert len(golden()) == COUNT
    assert not marked() & set(golden()), "operators of the list need no mark"


def test_the_list_is_sorted():
    assert golden() == sorted(set(golden()))


def test_views_never_fall_back():
    assert all(is_native(op, "cuda") for op in OPS if op.view)


def test_every_kernel_that_an_entry_names_is_declared():
    headers = (ROOT / "src" / "kernels" / "cpu").glob("**/*.h")
    declared = {name for file in headers for name in DECLARED.findall(file.read_text())}
    named = {name for op in OPS for name in op.kernels}
    assert named - declared == set()
    # randperm draws on the host, for any device
    assert declared - named == {"random_permutation"}


def test_a_definition_of_its_kernel_makes_an_operator_native(tmp_path, monkeypatch):
    op = next(op for op in OPS if op.ident == golden()[0])
    assert not is_native(op, "cuda")
    (tmp_path / "cuda").mkdir()
    defined = "".join(f"void {kernel}(const View& out) {{}}\n" for kernel in op.launched)
    (tmp_path / "cuda" / "own.cc").write_text(defined)
    monkeypatch.setattr(device, "KERNELS", tmp_path)
    assert is_native(op, "cuda")
