"""`tests/gpu/run.py` where there is no card: it says so, and fails nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_without_a_card_everything_is_skipped_and_counted(tmp_path):
    report = tmp_path / "out.json"
    env = dict(os.environ, TAEDA_CUDA="none")
    command = [sys.executable, ROOT / "tests" / "gpu" / "run.py", "--json", report]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("0 passed, 0 failed, 1 skipped: no card, or no driver for it\n")
    written = json.loads(report.read_text())
    assert written["rows"] == [] and written["skipped"] == "no card, or no driver for it"
