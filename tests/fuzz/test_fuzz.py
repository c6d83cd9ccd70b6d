"""A sample of what ``make fuzz`` does; and that the fuzzer finds what it is for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from tests.children import ENVIRONMENT, ROOT, SANITIZED
from tests.fuzz.programs import Program
from tests.fuzz.runner import Finding, start
from tests.fuzz.shrink import shrink

import taeda

CALLS = int(os.environ.get("TAEDA_FUZZ_CALLS", "2000" if SANITIZED else "20000"))
SEED = os.environ.get("TAEDA_FUZZ_SEED", "0")
KILL = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"


def run(*options: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "tests.fuzz", *options]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT)


def test_odd_arguments() -> None:
    done = run("--calls", str(CALLS), "--seed", SEED)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    counts = re.search(r"([\d,]+) calls, ([\d,]+) results", done.stdout)
    assert counts, done.stdout
    calls, results = (int(n.replace(",", "")) for n in counts.groups())
    # most calls are refused; enough must come through for the kernels to have been reached
    assert calls == CALLS and results > calls // 5


def program(text: str, target: str = "x") -> Program:
    return Program("operator", target, text)


def outcome(*texts: str, seconds: float = 5.0):
    return start("taeda", [program(t) for t in texts], seconds).wait()


def test_a_death_is_named() -> None:
    cause = "exit status 1" if SANITIZED else "SIGSEGV"  # reported, and ended
    found = outcome("r = torch.ones(2)", "torch.ones(2, 'x')", KILL, "r = 1")
    assert (found.cause, found.at, found.results, found.exceptions) == (cause, 2, 1, 1)
    assert outcome("import os; os._exit(3)").cause == "exit status 3"


def test_a_hang_is_named() -> None:
    found = outcome("r = 1", "while True: pass", seconds=0.2)
    assert (found.cause, found.at) == ("hang", 1)


@pytest.mark.parametrize(
    "text",
    [
        "raise SystemError('x')",
        "raise RuntimeError",
        "undefined_name",
        "raise RuntimeError('std::bad_alloc')",
    ],
)
def test_a_message_that_says_nothing_is_found(text: str) -> None:
    notes = [json.loads(line) for line in outcome("r = 1", text).notes]
    assert [note["wrong"] for note in notes if "wrong" in note] == [1]


def test_calls_that_raise_are_answers() -> None:
    notes = outcome("torch.ones(2) @ torch.ones(3)", "torch.ones(3)[9]").notes
    assert not any('"wrong"' in line for line in notes)


def test_a_fault_is_made_small() -> None:
    died = "import os\nr = [os.abort(), torch.arange(9).reshape((3, 3)).flip(0)]"
    texts = ["r = torch.arange(9)", "x = torch.ones(2)\n" + died + "\nrepr(x)", "r = 2"]
    programs = [program(t) for t in texts]
    finding = Finding("death", "SIGABRT", "x", 0, 0, programs[:2])
    assert shrink(finding, "taeda")
    assert len(finding.programs) == 1
    assert finding.programs[0].text == "import os\nr = os.abort()"


def test_a_fault_of_two_calls_keeps_both() -> None:
    first, second = "torch.planted = 1", "import os\nif torch.planted: os.abort()"
    programs = [program(t) for t in ("r = 1", first, "r = 2", "r = 3", second)]
    finding = Finding("death", "SIGABRT", "x", 0, 0, programs)
    assert shrink(finding, "taeda")
    assert len(finding.programs) == 2
    assert not hasattr(taeda, "planted")


def test_the_same_seed_makes_the_same_calls() -> None:
    first, second = (run("--calls", "300", "--seed", "5", "--jobs", "1").stdout for _ in range(2))
    assert first.splitlines()[-1] == second.splitlines()[-1]
