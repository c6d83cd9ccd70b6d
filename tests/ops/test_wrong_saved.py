"""Backward steps whose saved tensors are not what was saved: an exception, never a signal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.children import ENVIRONMENT


def test_every_backward_step_survives_wrong_saved_tensors(tmp_path: Path) -> None:
    """By hand, with more dtypes: python -m tests.ops.wrong_saved 4 /tmp/log"""
    done = subprocess.run(
        [sys.executable, "-m", "tests.ops.wrong_saved", "1", str(tmp_path / "log")],
        capture_output=True, text=True, timeout=600,
        env=ENVIRONMENT,
    )  # fmt: skip
    assert done.stdout.endswith(" 0 deaths\n"), done.stdout + done.stderr
