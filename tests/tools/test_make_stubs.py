"""The step of the build that makes the type stubs: what it reads, and what follows from that."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from gen import table  # noqa: E402

from stubs import package, sources  # noqa: E402

ENTRY = """
- op: scaled(Tensor self, *, float by=2.0) -> Tensor
  expr: self * by
"""


def make(out):
    """Runs the step; the files that its dependency file names."""
    script = [sys.executable, ROOT / "tools" / "make_stubs.py"]
    subprocess.run([*script, "--out", out, "--depfile", out / "stubs.d"], check=True)
    target, _, needed = (out / "stubs.d").read_text().partition(": ")
    assert target == str(out / "_C.pyi")
    return {str(Path(file).relative_to(ROOT)) for file in needed.split()}


def test_the_step_names_all_that_it_reads_and_nothing_that_makes_cxx(tmp_path):
    needed = make(tmp_path)
    assert {str(path.relative_to(ROOT)) for path in (ROOT / "ops").glob("**/*.yaml")} <= needed
    assert {
        "include/taeda/dtype.h",
        "python/taeda/__init__.py",
        "python/taeda/_tensor.py",
        "python/taeda/nn/_functional/loss.py",
        "tools/make_stubs.py",
        "tools/stubs/head.pyi.in",
        "tools/stubs/sources.py",
        "gen/schema.py",
        "gen/signatures.py",
    } <= needed
    assert not needed & {"gen/operators.py", "gen/expr.py", "gen/__main__.py", "gen/python.py"}


def test_the_generator_reads_nothing_of_the_package():
    """An edit of a Python file makes no C++ anew: no module of the generator names the folder."""
    for module in (ROOT / "gen").glob("*.py"):
        assert not re.search(r"python/taeda|\.pyi", module.read_text()), module
    cmake = (ROOT / "cmake" / "generate.cmake").read_text()
    assert "python/taeda" not in cmake


def test_two_runs_make_the_same_text(tmp_path):
    """Whatever the order of sets is in a process."""
    for run in ("a", "b"):
        make(tmp_path / run)
    for file in (tmp_path / "a").rglob("*.pyi"):
        assert file.read_text() == (tmp_path / "b" / file.relative_to(tmp_path / "a")).read_text()


def test_an_entry_of_the_table_becomes_a_function_and_a_method(tmp_path):
    (tmp_path / "scaled.yaml").write_text(ENTRY)
    files = package.generate(table.load(tmp_path))
    assert (
        "def scaled(input: Tensor, *, by: _float = 2.0, out: Tensor | None = None) -> Tensor: ..."
        in (files["_operators.pyi"].split("\n"))
    )
    assert "    def scaled(self, *, by: _float = 2.0) -> Tensor: ..." in (
        files["_C.pyi"].split("\n")
    )
    for name in ("_operators.pyi", "_C.pyi"):
        ast.parse(files[name])


def test_methods_in_python_keep_their_own_annotations(tmp_path):
    file = tmp_path / "methods.py"
    file.write_text(
        "def halve_(self, times: int = 1, dtype=torch.float32) -> Tensor: ...\n"
        "def _hidden(self): ...\n"
        "def helper(x): ...\n"
    )
    assert sources.methods(file, later=True) == {
        "halve_": "def halve_(self, times: _int=1, dtype=...) -> Self: ..."
    }
    assert sources.methods(file, later=False) == {}


def test_an_error_of_the_table_is_one_line(tmp_path, capsys, monkeypatch):
    import make_stubs

    (tmp_path / "ops").mkdir()
    (tmp_path / "ops" / "bad.yaml").write_text("\n- op: bad(Tensor self) -> Tensor\n  size: 1\n")
    monkeypatch.setattr(make_stubs, "ROOT", tmp_path)
    monkeypatch.setattr("sys.argv", ["make_stubs", "--out", str(tmp_path / "out")])
    assert make_stubs.main() == 1
    assert re.fullmatch(r"error: ops/bad.yaml:2: unknown key 'size'.*\n", capsys.readouterr().err)
