"""The tests of operators by kernels (tests/device/simulated) on a card, and the kernels that ran.

They run in processes of pytest's, one a file, so that one that loses the device spoils no other.
What needs the simulated driver, or a second device, skips itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

from tests.gpu.rows import FAILED, PASSED, SKIPPED, Row, Settings, within_time

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "device" / "simulated"
# What is not about operators, and counts on the simulated devices' sizes and times.
LEFT_OUT = {"test_nvml.py", "test_memory.py", "test_memory_history.py", "test_streams.py"}

LOADS_ALL = "test_preload.py"  # kernels, without launching them


def files(settings: Settings) -> list[Path]:
    found = [f for f in sorted(FOLDER.glob("test_*.py")) if f.name not in LEFT_OUT]
    # The suite runs all of them on the simulated driver: one shows that they run from here.
    return [f for f in found if f.name == LOADS_ALL] if settings.simulated else found


def outcome(case: ElementTree.Element) -> tuple[str, str]:
    for child in case:
        if child.tag in ("failure", "error"):
            return FAILED, (child.get("message") or child.text or "")[:800]
        if child.tag == "skipped":
            return SKIPPED, child.get("message") or ""
    return PASSED, ""


def run_file(file: Path, folder: Path, settings: Settings) -> Iterator[Row]:
    report = folder / f"{file.stem}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    env = dict(os.environ, TAEDA_LOADED_KERNELS=str(folder / f"{file.stem}.json"))
    left = max(settings.until - time.monotonic(), 1)
    try:
        done = subprocess.run(
            [*command, f"--junitxml={report}"], cwd=ROOT, env=env, capture_output=True, text=True,
            timeout=None if left == float("inf") else left,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        yield Row(file.name, SKIPPED, "time was up")
        return
    if not report.exists():
        yield Row(file.name, FAILED, f"status {done.returncode}: {done.stdout[-400:]}")
        return
    for case in ElementTree.parse(report).iter("testcase"):
        result, detail = outcome(case)
        yield Row(f"{file.stem} {case.get('name')}", result, detail)


def names(settings: Settings) -> list[str]:
    """The tests that pytest finds, which are collected without a device."""
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider"]
    env = dict(os.environ, TAEDA_CUDA="driver")
    done = subprocess.run(
        [*command, *map(str, files(settings))], cwd=ROOT, env=env, capture_output=True, text=True
    )
    tests = [line.split("::", 1) for line in done.stdout.splitlines() if "::" in line]
    return [f"{Path(file).stem} {test}" for file, test in tests]


def rows(settings: Settings) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        for file in within_time(settings, files(settings), "files of tests"):
            if isinstance(file, Row):
                yield file
                return
            yield from run_file(file, Path(name), settings)
            loaded = Path(name) / f"{file.stem}.json"
            if loaded.exists() and file.name != LOADS_ALL:
                kernels.update(json.loads(loaded.read_text()))


# Those that these tests have launched, for run.py.
kernels: set[str] = set()
