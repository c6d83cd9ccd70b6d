"""A subset of the operators under NVIDIA's compute-sanitizer, where it is installed: memcheck finds
what reads and writes beyond its arrays, racecheck what threads of a block do without a barrier."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.gpu.rows import FAILED, SKIPPED, Row, Settings

ROOT = Path(__file__).resolve().parents[2]
WRONG = 86  # the status that says: something was found
# Operators of each family of kernels; threads of those that race work together.
TOGETHER = "sum std_correction softmax layer_norm cumsum sort topk nonzero mode max_pool2d _fft_c2c"
SUBSETS = {
    "memcheck": f"{TOGETHER} add gelu where index_select gather cat im2col addcmul pad flip histc",
    "racecheck": f"{TOGETHER} cumprod logcumsumexp cross_entropy",
}


def program() -> str | None:
    found = shutil.which("compute-sanitizer")
    cuda = Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin" / "compute-sanitizer"
    return found or (str(cuda) if cuda.exists() else None)


def run(tool: str, operators: str, settings: Settings, path: str) -> Row:
    left = settings.until - time.monotonic()
    with tempfile.NamedTemporaryFile() as out:
        only = f"^({operators.replace(' ', '|')})$"
        part = ["-m", "tests.gpu.part", "parity", "--simulated", "--only", only]
        command = [path, "--tool", tool, f"--error-exitcode={WRONG}", "--print-limit=5"]
        command += [sys.executable, *part, "--out", out.name]
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True,
                timeout=None if left == float("inf") else max(left, 1),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Row(tool, SKIPPED, "time was up")
    if done.returncode:
        why = "found something" if done.returncode == WRONG else f"status {done.returncode}"
        return Row(tool, FAILED, f"{why}: {(done.stdout + done.stderr)[-800:]}")
    return Row(tool, detail=f"{len(operators.split())} operators")


def names(settings: Settings) -> list[str]:
    return [*SUBSETS]


def rows(settings: Settings) -> Iterator[Row]:
    path = program()
    for tool, operators in SUBSETS.items():
        if settings.simulated or path is None:
            why = "kernels run on the CPU" if settings.simulated else "it is not installed"
            yield Row(tool, SKIPPED, f"compute-sanitizer: {why}")
        elif settings.late:
            yield Row(tool, SKIPPED, "time was up")
        else:
            yield run(tool, operators, settings, path)
