"""Which operators a CUDA device runs itself: tests/ops/on_fallback.txt names the others.

They are of the kinds that libraries of NVIDIA's compute, by the files of the table that have such
operators and no others. A line goes when src/kernels/cuda gets the operator's kernel; a new
operator of one of these files may come with a line, any other comes with a kernel.
"""

import re
from pathlib import Path

from gen import device
from gen.device import is_native
from gen.table import load

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).with_name("on_fallback.txt")
OPS = load(ROOT / "ops")
HEADING = re.compile(r"^# .+ \((.+)\)$")
LIBRARIES = {"linalg", "conv", "attention", "recurrent", "lapack"}
DECLARED = re.compile(r"^TD_KERNEL\((\w+)\);", re.M)


def listed():
    """The operators below each heading, by its file or folder of the table."""
    found = {}
    for line in GOLDEN.read_text(encoding="utf-8").splitlines():
        if heading := HEADING.match(line):
            found[heading[1].removesuffix(".yaml")] = names = []
        elif line and not line.startswith("#"):
            names.append(line)
    return found


def golden():
    return [name for names in listed().values() for name in names]


def on_fallback():
    """The same, by what src/kernels/cuda defines."""
    found = {}
    for op in OPS:
        if op.dispatched and not is_native(op, "cuda"):
            found.setdefault(op.family, []).append(op.ident)
    return {family: sorted(names) for family, names in found.items()}


def test_the_list_has_what_is_on_fallback_and_nothing_else():
    assert listed() == on_fallback()


def test_only_what_libraries_compute_is_on_fallback():
    assert set(on_fallback()) <= LIBRARIES, "give src/kernels/cuda a kernel"


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
