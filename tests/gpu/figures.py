"""Figures 1 and 2 of the paper, measured: bench/device_figures.py --card, beside the page."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.gpu.rows import FAILED, SKIPPED, Row, Settings

import taeda

SCRIPT = Path(__file__).resolve().parents[2] / "bench" / "device_figures.py"
NAME = "figures 1 and 2 of the paper, pointwise kernels for all operators"
NEEDED = 12 << 30  # of the device's memory


def drawn(settings: Settings, folder: Path) -> Row:
    left = settings.until - time.monotonic()
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, str(SCRIPT), "--card", "--out", out]
        command += ["--batch=1", "--image=32"] if settings.simulated else []
        try:
            done = subprocess.run(
                command, capture_output=True, text=True,
                timeout=None if left == float("inf") else max(left, 1),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Row(NAME, SKIPPED, "time was up")
        if done.returncode:
            return Row(NAME, FAILED, f"status {done.returncode}: {done.stderr[-600:]}")
        folder.mkdir(parents=True, exist_ok=True)
        pictures = [Path(shutil.copy(picture, folder)) for picture in Path(out).glob("*.svg")]
    return Row(NAME, detail=" ".join(f"![{p.stem}]({p.name})" for p in sorted(pictures)))


def names(settings: Settings) -> list[str]:
    return [NAME]


def rows(settings: Settings) -> Iterator[Row]:
    if settings.report is None:
        yield Row(NAME, SKIPPED, "no folder for the pictures: --report")
    elif not settings.simulated and taeda.cuda.mem_get_info()[0] < NEEDED:
        yield Row(NAME, SKIPPED, f"less than {NEEDED >> 30} GiB of the device's memory are free")
    else:
        yield drawn(settings, settings.report)
