"""tools/build_time.py: what a build and a change cost."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from gen import pointwise  # noqa: E402
from gen.__main__ import generate  # noqa: E402

import build_time  # noqa: E402

PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(small CXX)
add_library(small SHARED one.cc two.cc)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of two files, and the script's own folder."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "CMakeLists.txt").write_text(PROJECT)
    (root / "one.cc").write_text("int one() { return 1; }\n")
    (root / "two.cc").write_text("int two() { return 2; }\n")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    monkeypatch.setattr(build_time, "ROOT", root)
    monkeypatch.setattr(
        build_time, "CASES", {"edit-one": build_time.edit("one.cc", "return 1", "return 3")}
    )
    monkeypatch.setattr("sys.argv", ["build_time", "--build", str(tmp_path / "build"), "--verbose"])
    return root


def test_a_change_is_measured_and_taken_back(project, tmp_path, capsys):
    assert build_time.main() == 0
    header, everything, edited, *commands = capsys.readouterr().out.splitlines()
    assert header.split()[:2] == ["CPU", "s"]
    assert everything.split()[0] == "build" and everything.split()[2] == "3"
    name, cpu, count, chain, two_cores, _ = edited.split()
    assert (name, count) == ("edit-one", "2") and {Path(c.split()[1]).name for c in commands} == {
        "one.cc.o",
        "libsmall.so",
    }
    assert float(two_cores) == max(round(float(cpu) / 2, 1), float(chain)) > 0
    assert (tmp_path / "build/source/one.cc").read_text() == (project / "one.cc").read_text()
    assert "return 1" in (project / "one.cc").read_text()


def test_a_case_over_the_target_fails(project, monkeypatch, capsys):
    monkeypatch.setattr(build_time, "TARGET_S", 0)
    assert build_time.main() == 1
    assert capsys.readouterr().out.splitlines()[-1] == "over the target of 0 s: edit-one"


def test_a_second_run_builds_what_changed(project, capsys):
    build_time.main()
    (project / "two.cc").write_text("int two() { return 4; }\n")
    capsys.readouterr()
    build_time.main()
    assert capsys.readouterr().out.splitlines()[1].split()[2] == "2"


@pytest.fixture(scope="module")
def generated():
    return generate(ROOT / "ops")


@pytest.mark.parametrize("name", build_time.CASES)
def test_every_case_changes_the_tree_as_it_is(name):
    for file, text in build_time.CASES[name](ROOT).items():
        assert not (ROOT / file).exists() or (ROOT / file).read_text() != text


@pytest.mark.parametrize("name", [name for name in build_time.CASES if name.startswith("add")])
def test_a_new_operator_makes_few_files_anew(name, generated, tmp_path, monkeypatch):
    shutil.copytree(ROOT / "ops", tmp_path / "ops")
    for file, text in build_time.CASES[name](ROOT).items():
        if file.startswith("ops/"):
            (tmp_path / file).write_text(text)
    known = {**pointwise.read_functors(), "BuildTimePointwise": "exponential.h"}
    assert "struct BuildTimePointwise {" in build_time.FUNCTOR
    monkeypatch.setattr(pointwise, "read_functors", lambda: known)
    after = generate(tmp_path / "ops")
    compiled = [n for n in after if n.endswith(".cc") and generated.get(n) != after[n]]
    assert len(compiled) <= 10, compiled


def test_no_file_of_the_library_sees_the_list_of_operators():
    """It changes with every new one: taeda/ops.h and what includes it are for users."""
    lists = ('"taeda/ops.h"', '"taeda/taeda.h"', '"taeda/foreach.h"', '"taeda/tensor_operators.h"')
    for file in [*(ROOT / "src").rglob("*.cc"), *(ROOT / "src").rglob("*.h")]:
        text = file.read_text()
        assert not any(f"#include {name}" in text for name in lists), file
    for file in (ROOT / "include" / "taeda").glob("*.h"):
        if file.name not in ("taeda.h", "foreach.h", "tensor_operators.h"):
            assert '#include "taeda/ops.h"' not in file.read_text(), file
