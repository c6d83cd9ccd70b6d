"""A kernel's first call in a process: compiled by the driver from PTX, and loaded as a cubin of the
wheel taeda-cuda."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.gpu.rows import FAILED, SKIPPED, Row, Settings, bar

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (("PTX", "", 60.0), ("a cubin", None, 5.0))  # of a kernel, and milliseconds at most
# Another kernel has been loaded: the device's context is there, the packed file has been opened.
PROGRAM = """
import sys, time, taeda
x = taeda.ones(8, dtype=taeda.float64, device="cuda")
(x + x).sinh()
taeda.cuda.synchronize()
start = time.perf_counter()
x.softmax(0)
taeda.cuda.synchronize()
print((time.perf_counter() - start) * 1e3, taeda._C._cuda_has_cubins(0))
"""


def first_call(cubins: str | None) -> tuple[float, bool]:
    """Milliseconds, and whether kernels come as cubins. The driver's own cache is off."""
    env = dict(os.environ, CUDA_CACHE_DISABLE="1")
    if cubins is not None:
        env["TAEDA_CUBINS"] = cubins
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, env=env, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr[-400:])
    ms, compiled = done.stdout.split()
    return float(ms), compiled == "True"


def names(settings: Settings) -> list[str]:
    return [f"first call from {name}" for name, *_ in SOURCES]


def rows(settings: Settings) -> Iterator[Row]:
    for name, cubins, bound in SOURCES:
        try:
            ms, compiled = first_call(cubins)
        except RuntimeError as error:
            yield Row(f"first call from {name}", FAILED, str(error))
            continue
        if cubins is None and not compiled:
            yield Row(f"first call from {name}", SKIPPED, "taeda-cuda is not installed")
            continue
        yield bar(settings, f"first call from {name}", ms, "ms", at_most=bound)
