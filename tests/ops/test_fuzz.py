"""Odd arguments to everything public: a result or a Python exception, soon, and never a signal.

TAEDA_FUZZ_SECONDS and TAEDA_FUZZ_SEED make a longer run, or another one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SECONDS = float(os.environ.get("TAEDA_FUZZ_SECONDS", "6"))
SEED = int(os.environ.get("TAEDA_FUZZ_SEED", "0"))


def last_call(log: Path) -> str:
    calls = log.read_text().splitlines() if log.exists() else []
    return calls[-1] if calls else "nothing was called"


@pytest.mark.parametrize("run", range(2))
def test_odd_arguments(run: int, tmp_path: Path) -> None:
    log = tmp_path / "calls"
    program = Path(__file__).with_name("fuzz_calls.py")
    root = str(program.parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path])}
    command = [sys.executable, str(program), str(2 * SEED + run), str(SECONDS), str(log)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=SECONDS * 3 + 30, env=environment
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"hangs: {last_call(log)}")
    ended = f"ended with {done.returncode} in {last_call(log)}"
    assert done.returncode == 0, f"{ended}\n{done.stderr[-2000:]}"
    found = json.loads(done.stdout.splitlines()[-1])
    assert not found["slow"], "\n".join(found["slow"])
    assert not found["wrong"], "\n".join(found["wrong"])
    # most calls are refused; enough must come through for the kernels to have been reached
    assert found["calls"] > 50 and found["results"] > found["calls"] // 20, found
