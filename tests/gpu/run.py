"""Checks and measurements on a card: `python tests/gpu/run.py --json out.json`, 8 minutes at most.

    first_call  a kernel's first call, from PTX and from a cubin
    bars        bandwidths, launches, sorting, the allocator
    traces      recorded allocations: memory reserved beside PyTorch's
    graphs      a captured training step
    figures     Figures 1 and 2 of the paper, beside the page of --report
    randoms     random numbers beside PyTorch's
    parity      every operator of the table beside the CPU's, and PyTorch's on the card
    cases       the tests of operators by kernels (tests/device/simulated)
    sanitizers  memcheck and racecheck, by compute-sanitizer

Each part runs in a process of its own. What is not installed, and what there was no time for, is
skipped and counted; without a card, a driver or compiled kernels (`make cuda-kernels`) each part's
cases are. `--json` has every part's counts and rows. `--report DIR` writes a page with date, card
and driver. With TAEDA_CUDA=sim all of it runs on the simulated driver, in small: times are then not
measured. Exits 1 when something failed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]

from tests.gpu.part import NAMES, rival  # noqa: E402
from tests.gpu.report import by_part, page, summary  # noqa: E402
from tests.gpu.rows import FAILED, SKIPPED, Settings  # noqa: E402

import taeda  # noqa: E402

SECONDS = 480


def reason_to_skip() -> str:
    if not taeda.cuda.is_available():
        return "no card, or no driver for it"
    if not taeda._C._cuda_has_kernels():
        return "no compiled kernels: make cuda-kernels"
    return ""


def about_the_device() -> dict[str, Any]:
    card = taeda.cuda.get_device_properties(0)
    return {
        "card": taeda.cuda.get_device_name(),
        "compute_capability": f"{card.major}.{card.minor}",
        "memory_gib": round(card.total_memory / 2**30, 1),
        "driver": driver_version(),
        "simulated": taeda._C._cuda_is_simulated(),
        "taeda": taeda.version.taeda if hasattr(taeda.version, "taeda") else taeda.__version__,
    }


def driver_version() -> str:
    """Of NVIDIA's driver, as its kernel module says, or its program."""
    module = Path("/proc/driver/nvidia/version")
    if not module.exists():
        if taeda._C._cuda_is_simulated() or not shutil.which("nvidia-smi"):
            return "unknown"
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True).stdout.split("\n")[0]
    words = module.read_text().splitlines()[0].split()
    return next((w for w in words if w[0].isdigit() and "." in w), "unknown")


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def run_part(
    name: str, seconds: float, simulated: bool, report: Path | None = None
) -> tuple[list[dict[str, Any]], set[str]]:
    """Its rows, and the kernels that it loaded."""
    if seconds < 5:
        return [{"name": name, "outcome": SKIPPED, "detail": "time was up"}], set()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.jsonl"
        command = [sys.executable, "-m", "tests.gpu.part", name, "--out", str(out)]
        command += [f"--seconds={seconds - 4:.0f}", *(["--simulated"] if simulated else [])]
        command += [f"--report={report.resolve()}"] if report else []
        fault = ""
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, text=True, timeout=seconds
            )
            if done.returncode:
                fault = f"ended with status {done.returncode}: {done.stderr[-800:]}"
        except subprocess.TimeoutExpired:
            fault = "took longer than it was told to"
        rows = lines_of(out)
    kernels = {k for row in rows for k in row.get("kernels", ())}
    rows = [row for row in rows if "name" in row]
    if fault:
        rows.append({"name": f"the part {name}", "outcome": FAILED, "detail": fault})
    return rows, kernels


def left_out(part: str, reason: str) -> Iterator[dict[str, Any]]:
    """A row for each of the part's cases: all of them are skipped."""
    settings = Settings(rival=rival())
    for name in importlib.import_module(f"tests.gpu.{part}").names(settings):
        yield {"part": part, "name": name, "outcome": SKIPPED, "detail": reason}


def run(
    parts: list[str], seconds: float, simulated: bool, report: Path | None
) -> Iterator[dict[str, Any]]:
    end, launched = time.monotonic() + seconds, set[str]()
    for part in parts:
        start = time.monotonic()
        rows, kernels = run_part(part, end - start, simulated, report)
        launched |= kernels
        print(f"{part}: {len(rows)} rows, {time.monotonic() - start:.0f} s", flush=True)
        yield from ({"part": part, **row} for row in rows)
    if {"parity", "cases"} <= set(parts) and not simulated:
        known = taeda._C._cuda_kernel_names()
        missing = sorted(set(known) - launched)
        detail = f"{len(known) - len(missing)} of {len(known)} kernels ran"
        if missing:
            detail += f"; not {' '.join(missing[:100])}"
        yield {"part": "kernels", "name": "kernels that ran", "outcome": "passed", "detail": detail}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=Path, help="where the rows go")
    parser.add_argument("--report", type=Path, help="the folder of the page, such as docs/gpu")
    parser.add_argument("--parts", nargs="*", choices=NAMES, default=NAMES)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    args = parser.parse_args()
    os.environ.setdefault("TAEDA_CUDA", "driver")  # the parts' processes have it, too
    report: dict[str, Any] = {"date": date.today().isoformat(), "skipped": reason_to_skip()}
    if report["skipped"]:
        rows = [row for part in args.parts for row in left_out(part, report["skipped"])]
    else:
        report |= about_the_device()
        rows = [*run(args.parts, args.seconds, report["simulated"], args.report)]
    report["parts"] = by_part(rows)
    report["rows"] = rows
    if args.json:
        args.json.write_text(json.dumps(report, indent=1))
    if args.report and not report["skipped"]:
        print(page(report, args.report))
    for row in rows:
        if row["outcome"] == FAILED or row.get("value") is not None:
            print(json.dumps(row))
    for part, found in report["parts"].items():
        if report["skipped"]:
            print(f"{part}: {found[SKIPPED]} skipped")
    print(summary(report))
    return 1 if any(row["outcome"] == FAILED for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
