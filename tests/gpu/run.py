"""Checks and measurements on a card: `python tests/gpu/run.py --json out.json`, some minutes.

Parity: every pointwise operator, with every dtype, as the CPU's (the cases of
tests/device/simulated/test_pointwise.py). Bars: bandwidth beside that of a copy by the driver, the
time of a launch, the time of a kernel's first call. Without a card, a driver or compiled kernels
(`make cuda-kernels`) everything is skipped, and counted as that. Exits 1 when something failed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]
os.environ.setdefault("TAEDA_CUDA", "driver")

import taeda  # noqa: E402

BYTES = 256 << 20  # of each array whose bandwidth is measured
BANDWIDTH_SHARE = 0.85
LAUNCH_US, FIRST_CALL_MS = 5.0, 60.0


def milliseconds(work: Callable[[], Any], repeats: int = 20) -> float:
    """The median time of `work` on the device."""
    times = []
    for _ in range(repeats):
        start, end = (taeda.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return sorted(times)[repeats // 2]


def bandwidths() -> dict[str, float]:
    """GB/s of reading and writing, by operator and dtype."""
    found = {}
    for dtype in (taeda.float32, taeda.bfloat16):
        n = BYTES // dtype.itemsize
        x, y = taeda.ones(n, dtype=dtype, device="cuda"), taeda.ones(n, dtype=dtype, device="cuda")
        z = taeda.empty_like(x)
        cases = {
            "copy by the driver": (2, lambda y=y, z=z: z.copy_(y)),
            "add": (3, lambda x=x, y=y, z=z: taeda.add(x, y, out=z)),
            "mul by a number": (2, lambda x=x, z=z: taeda.mul(x, 2.0, out=z)),
            "gelu": (2, lambda x=x: taeda.nn.functional.gelu(x)),
        }
        for name, (arrays, work) in cases.items():
            work()
            key = f"{name} {str(dtype).removeprefix('torch.')}"
            found[key] = arrays * BYTES / milliseconds(work) / 1e6
    return found


def first_call_ms() -> float:
    """From a kernel's name to its result, for one that nobody has asked for."""
    x = taeda.ones(8, dtype=taeda.float64, device="cuda")
    taeda.cuda.synchronize()
    start = time.perf_counter()
    x.asinh()
    taeda.cuda.synchronize()
    return (time.perf_counter() - start) * 1e3


def launch_us() -> float:
    x = taeda.ones(8, device="cuda")
    x.add_(1)
    taeda.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(5000):
        x.add_(1)
    seconds = time.perf_counter() - start
    taeda.cuda.synchronize()
    return seconds / 5000 * 1e6


def measured() -> list[dict[str, Any]]:
    rows = [{"name": "first call, ms", "value": first_call_ms(), "at_most": FIRST_CALL_MS}]
    rows.append({"name": "a launch, us", "value": launch_us(), "at_most": LAUNCH_US})
    speeds = bandwidths()
    for name, value in speeds.items():
        copy = speeds[f"copy by the driver {name.split()[-1]}"]
        rows.append({"name": f"{name}, GB/s", "value": value, "at_least": BANDWIDTH_SHARE * copy})
    for row in rows:
        row["passed"] = row.get("at_least", 0) <= row["value"] <= row.get("at_most", float("inf"))
    return rows


def parity() -> list[dict[str, Any]]:
    from tests.device.simulated import test_pointwise as cases

    rows = []
    tests = [cases.test_dense_operands, cases.test_operands_of_any_strides]
    several = [cases.test_broadcast_operands, cases.test_mixed_dtypes]
    for op in cases.OPS:
        for test in [*tests, *(several if len(op.sig.tensor_args) > 1 else [])]:
            row = {"name": f"{test.__name__} {op.ident}", "passed": True}
            try:
                test(op)
            except Exception as error:
                row |= {"passed": False, "error": str(error)[:500]}
            rows.append(row)
    return rows


def reason_to_skip() -> str:
    if not taeda.cuda.is_available():
        return "no card, or no driver for it"
    if not taeda._C._cuda_has_kernels():
        return "no compiled kernels: make cuda-kernels"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="where the report goes")
    args = parser.parse_args()
    report: dict[str, Any] = {"date": date.today().isoformat(), "skipped": reason_to_skip()}
    rows: list[dict[str, Any]] = []
    if not report["skipped"]:
        report["card"] = taeda.cuda.get_device_name()
        rows = [*measured(), *parity()]
    report["rows"] = rows
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))
    for row in rows:
        if not row["passed"] or "value" in row:
            print(json.dumps(row))
    failed = sum(not row["passed"] for row in rows)
    why = f": {report['skipped']}" if report["skipped"] else ""
    print(f"{len(rows) - failed} passed, {failed} failed, {int(not rows)} skipped{why}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
