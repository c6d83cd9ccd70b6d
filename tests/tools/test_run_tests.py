"""The test runner's arithmetic, with programs that only pretend to be tests."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

REPORT = {
    "testsuites": [
        {
            "name": "A",
            "testsuite": [
                {"name": "Good", "status": "RUN", "result": "COMPLETED"},
                {"name": "Bad", "status": "RUN", "result": "COMPLETED", "failures": [{}]},
                {"name": "Left", "status": "RUN", "result": "SKIPPED"},
            ],
        }
    ]
}
PYTHON_TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert False
@pytest.mark.skip
def test_left(): pass
"""


def run(tmp_path, report, status, *arguments):
    """Runs the runner on a build folder whose C++ tests write `report` and exit with `status`."""
    program = tmp_path / "taeda_tests"
    text = "" if report is None else f"open(path, 'w').write({json.dumps(report)!r})"
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"path = [a for a in sys.argv if 'json:' in a][0].split('json:')[1]\n"
        f"{text}\nsys.exit({status})\n"
    )
    program.chmod(0o755)
    command = [sys.executable, ROOT / "tools" / "run_tests.py", "--build", tmp_path, *arguments]
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    return result.returncode, result.stdout.strip().split("\n")


def test_counts_are_added_up(tmp_path):
    (tmp_path / "test_some.py").write_text(PYTHON_TESTS)
    status, lines = run(tmp_path, REPORT, 1, tmp_path / "test_some.py")
    assert status == 1
    assert lines[-1] == "2 passed, 2 failed, 2 skipped"
    assert "FAILED C++ A.Bad" in lines
    assert sum("passed" in line for line in lines) == 1


@pytest.mark.parametrize("report, status", [(None, -11), (None, 0), ({"testsuites": []}, 3)])
def test_a_program_that_dies_counts_as_a_failure(tmp_path, report, status):
    code, lines = run(tmp_path, report, status, "--only", "cpp")
    assert code == 1
    assert lines[-1] == "0 passed, 1 failed"


def test_success(tmp_path):
    (tmp_path / "test_some.py").write_text("def test_good(): pass\n")
    good = {"testsuites": [{"name": "A", "testsuite": REPORT["testsuites"][0]["testsuite"][:1]}]}
    status, lines = run(tmp_path, good, 0, tmp_path / "test_some.py")
    assert (status, lines[-1]) == (0, "2 passed, 0 failed")


def test_nothing_run_is_no_success(tmp_path):
    assert run(tmp_path, {"testsuites": []}, 0, "--only", "cpp")[0] == 1
