"""No kernel touches memory beside its tensors, whatever the instruction set."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.children import ENVIRONMENT, ROOT


@pytest.mark.parametrize("cpu", ["", "avx2", "baseline"])
def test_every_operator_keeps_to_its_tensors(cpu: str) -> None:
    """By hand, with more dtypes: TAEDA_CPU=baseline python -m tests.ops.guarded_memory 20"""
    if cpu and "TAEDA_CPU" in os.environ:
        pytest.skip("the instruction set is given")
    done = subprocess.run(
        [sys.executable, "-m", "tests.ops.guarded_memory", "2"], cwd=ROOT,
        capture_output=True, text=True, env=ENVIRONMENT | ({"TAEDA_CPU": cpu} if cpu else {}),
    )  # fmt: skip
    assert done.stdout.endswith(" 0 deaths, 0 operators differ\n"), done.stdout + done.stderr
