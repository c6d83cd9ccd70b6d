"""No operator ends the process where a dimension of its arguments has no elements."""

import re
import subprocess
import sys

from tests.children import ENVIRONMENT, ROOT


def test_a_dimension_without_elements_ends_no_process() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.ops.empty_dimensions"], cwd=ROOT,
        capture_output=True, text=True, env=ENVIRONMENT,
    )  # fmt: skip
    last = run.stdout.strip().rpartition("\n")[2]
    assert run.returncode == 0, f"ended with {run.returncode} in: {last}\n{run.stderr[-2000:]}"
    calls = re.fullmatch(r"(\d+) calls", last)
    assert calls and int(calls[1]) > 3000
