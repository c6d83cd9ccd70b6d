"""Outcomes of libraries' tests: written by the plugin as they come, read and compared."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import compare_suites as suites

TESTS = """
import os, pytest
def test_good(): pass
def test_bad(): assert 1 == 2, "unequal"
def test_skipped(): pytest.skip("no")
def test_crash(): os._exit(3)
def test_endless():
    while True: pass
@pytest.fixture
def broken():
    yield
    raise ValueError("after")
def test_torn_down(broken): pass
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> suites.Suite:
    monkeypatch.setattr(suites, "FOLDER", tmp_path)
    for folder in ("one", "outcomes", "fake"):
        (tmp_path / folder).mkdir()
    (tmp_path / "one" / ".revision").write_text("v1")
    (tmp_path / "one" / "pytest.ini").touch()
    (tmp_path / "one" / "test_one.py").write_text(TESTS)
    (tmp_path / "fake" / "torch.py").write_text("class library: define = staticmethod(print)")
    return suites.Suite("one", "a/b", "v1", ["test_one.py"], limit=1)


def run(suite: suites.Suite, failed: bool = False) -> dict[str, str]:
    path = [suites.FOLDER / "fake"]
    suite.run("taeda", [sys.executable], "", path, failed)
    found = suites.read(suite.file("taeda"))
    return {test.split("::")[1]: outcome for test, (outcome, _) in found.items()}


def test_a_run_goes_on_after_a_crash(suite: suites.Suite) -> None:
    expected = {
        "test_good": "passed", "test_bad": "failed", "test_skipped": "skipped",
        "test_crash": "crash", "test_endless": "failed", "test_torn_down": "failed",
    }  # fmt: skip
    assert run(suite) == expected
    text = suites.FOLDER / "one" / "test_one.py"
    text.write_text(TESTS.replace("1 == 2", "True").replace("def test_good(): pass", ""))
    again = run(suite, failed=True)  # test_good is kept, test_bad run
    assert again == expected | {"test_bad": "passed"}


def test_a_share_is_the_same_every_time(suite: suites.Suite) -> None:
    lines = "".join(f"def test_{i}(): pass\n" for i in range(100))
    (suites.FOLDER / "one" / "test_one.py").write_text(lines)
    suite.share = 30
    drawn = set(run(suite))
    assert 10 < len(drawn) < 50 and drawn == set(run(suite))


def test_comparison() -> None:
    suite = suites.Suite("one", "a/b", "v1", [], reasons={"*::slow*": "too slow"})
    theirs = {t: ("passed", "") for t in ("f::a", "f::b", "f::slow", "g::gone")}
    ours = {"f::a": ("passed", ""), "f::b": ("failed", "E: 1"), "f::slow": ("failed", "")}
    ours |= {"f::new": ("passed", ""), "g": ("collection", "no module")}
    one = suites.Comparison(suite, ours, theirs | {"f::new": ("skipped", "")})
    assert one.both == {"f::a"} and one.only_ours == {"f::new"}
    assert {test: one.reason(test) for test in one.only_theirs} == {
        "f::b": "failed: E: 1", "f::slow": "too slow", "g::gone": "collection: no module",
    }  # fmt: skip
    assert one.row() == "| one | v1 | 1970-01-01 | 1 | 3 | 1 | 1 | 25.0% |"
    page = suites.report([one], "", ["one", "two"])
    assert "Of 4 tests that pass with PyTorch 1 pass\nhere (25.0%)" in page
    assert "- too slow (1):\n  `f::slow`" in page
    part = suites.report([], page, ["one"], {"one": 3})
    assert "| one | v1 (3 %) | 1970-01-01 | 1 | 3 |" in part
    assert suites.report([], part, ["one"], {"one": 100}) == page


def test_what_is_left_out_is_said_and_not_counted() -> None:
    suite = suites.Suite("one", "a/b", "v1", [], left_out={"*LAZY*": "no such devices"})
    outcomes = {"f::a": ("passed", ""), "f::b_LAZY": ("passed", "")}
    one = suites.Comparison(suite, {}, suite.counted(outcomes))
    assert one.only_theirs == {"f::a"}
    page = suites.report([one], "", ["one"])
    assert (
        "## one\n\n- not counted, `*LAZY*`: no such devices\n- absent: not collected (1):" in page
    )


def test_rows_of_suites_that_did_not_run_stay() -> None:
    passed = {"f::a": ("passed", "")}
    one, two = (
        suites.Comparison(suites.Suite(name, "a/b", "v1", []), ours, passed)
        for name, ours in (("one", {}), ("two", passed))
    )
    both = suites.report([one, two], "", ["one", "two"])
    assert suites.report([one], both, ["one", "two"]) == both
    assert suites.report([], both, ["two"]).count("\n| ") == 2  # the heading and two
    better = suites.Comparison(one.suite, passed, passed)
    page = suites.report([better], both, ["one", "two"])
    assert "Of 2 tests that pass with PyTorch 2 pass\nhere" in page and "## one" not in page
