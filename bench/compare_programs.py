"""Programs on public packages, run by taeda and by PyTorch: `make programs`.

    python bench/compare_programs.py [--only gpt2,vit] [--repetitions 3]

Each file of bench/programs is an ordinary PyTorch program whose output is words and numbers. It
runs unmodified in two processes: `python -m taeda PROGRAM` where no torch is installed, and
`python PROGRAM` with PyTorch. The numbers that both print are compared; time and memory are those
of the whole process. The packages, bench/programs/requirements.txt, are installed without what
they require, so that none of them brings a torch. The table goes to docs/programs.md.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import re
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import agreement
from process import machine

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "bench" / "programs"
REQUIREMENTS = PROGRAMS / "requirements.txt"
FOLDER = ROOT / "build" / "programs"
CLOSE = 1e-3  # the relative difference of numbers that still count as the same
LIMIT = 300  # seconds that a program may take
REPOSITORIES = "# Programs of public repositories"  # what compare_repositories.py writes, from here
# torchvision's compiled part is for another build of PyTorch: without it, importing torchvision
# needs these operators' names.
WITH_PYTORCH = """
import runpy, sys, torch
for name in ("nms", "qnms"):
    torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float d) -> Tensor")
runpy.run_path(sys.argv[1], run_name="__main__")
"""


@dataclass
class Run:
    """What one process printed and took."""

    output: str
    error: str  # the last line of what it complained of, where it failed
    seconds: float
    megabytes: float

    def numbers(self) -> list[float]:
        found = re.findall(r"(?<![\w.])-?(?:\d+\.?\d*(?:e[-+]?\d+)?|nan|inf)(?![\w.])", self.output)
        return [float(number) for number in found]


def packages(requirements: Path, folder: Path) -> Path:
    """Installs the packages into a folder, without what they require; returns it."""
    ready = folder.parent / ".ready"
    if not ready.exists() or ready.read_text() != requirements.read_text():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade"]
        subprocess.run([*pip, "--target", folder, "-r", requirements], check=True)
        ready.write_text(requirements.read_text())
    return folder


def install() -> Path:
    """Installs the packages; returns a Python that sees them and taeda, and no PyTorch."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    installed = packages(REQUIREMENTS, FOLDER / "packages")
    environment = FOLDER / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    site = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (site / "programs.pth").write_text(f"{installed}\n{ROOT / 'build' / 'python'}\n")
    return environment / "bin" / "python"


def run(command: list[str], environment: dict[str, str]) -> Run:
    """Runs a program in an empty folder of its own, on two threads."""
    settings = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "2", "TOKENIZERS_PARALLELISM": "false"}
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as complaints:
        start = time.perf_counter()
        process = subprocess.Popen(
            ["timeout", str(LIMIT), *command], cwd=folder, text=True, stdout=subprocess.PIPE,
            stderr=complaints, env=os.environ | settings | environment,
        )  # fmt: skip
        assert process.stdout
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        complaints.seek(0)
        lines = complaints.read().strip().splitlines()
    code = os.waitstatus_to_exitcode(status)
    error = "" if code == 0 else (lines[-1] if lines else f"ended with status {code}")
    return Run(output, error, seconds, usage.ru_maxrss / 1024)


def difference(ours: list[float], theirs: list[float]) -> float:
    """The largest difference relative to the largest number; infinite for other counts."""
    if len(ours) != len(theirs) or not theirs:
        return math.inf
    largest = max((abs(x) for x in theirs if math.isfinite(x)), default=1.0) or 1.0
    pairs = [(a, b) for a, b in zip(ours, theirs) if a != b and not (a != a and b != b)]
    return max((abs(a - b) / largest for a, b in pairs), default=0.0)


def title(program: Path) -> str:
    """The first column: what the program's docstring says."""
    return re.sub(r"\s+", " ", program.read_text().split('"""')[1]).strip().rstrip(".")


def row(program: Path, python: Path, repetitions: int) -> str:
    """The program's row of the table."""
    with_torch = {"PYTHONPATH": str(FOLDER / "packages")}
    ours, theirs = [], []
    for _ in range(repetitions):
        ours.append(run([str(python), "-m", "taeda", str(program)], {}))
        theirs.append(run([sys.executable, "-c", WITH_PYTORCH, str(program)], with_torch))
        if ours[-1].error or theirs[-1].error:
            break
    error = ours[-1].error or (theirs[-1].error and f"PyTorch: {theirs[-1].error}")
    apart = difference(ours[-1].numbers(), theirs[-1].numbers())
    good = not error and apart <= CLOSE
    if error:
        result = error.replace("|", "/")[:160]
    elif not good:
        result = f"**other numbers** ({apart:.1g})"
    else:
        result = "the same" if apart == 0 else f"within {apart:.0e}"

    def median(runs: list[Run], name: str) -> float:
        return statistics.median(getattr(one, name) for one in runs)

    times = [median(ours, "seconds"), median(theirs, "seconds")]
    memory = [median(ours, "megabytes"), median(theirs, "megabytes")]
    figures = f"{times[0]:.1f} s | {times[1]:.1f} s | {memory[0]:.0f} MB | {memory[1]:.0f} MB"
    if error:
        figures = " | | | "
    return f"| {title(program)} | {result} | {figures} |"


def report(page: str, found: list[str]) -> str:
    """The page with these rows; those of programs that were not run stay."""
    ours, mark, rest = page.partition(REPOSITORIES)
    rows = {text.split(" | ")[0]: text for text in re.findall(r"^\| [^|]+ \| .*$", ours, re.M)}
    rows |= {text.split(" | ")[0]: text for text in found}
    kept = [rows[key] for p in sorted(PROGRAMS.glob("*.py")) if (key := f"| {title(p)}") in rows]
    good = agreement.count(kept)["same"]
    today = datetime.date.today().isoformat()
    whole = f"""# Programs on public packages

Made by `make programs` on {today}, {machine()}: the programs of `bench/programs`, unmodified,
run by `python -m taeda` and by PyTorch. {good} of {len(kept)} print PyTorch's numbers (to
{CLOSE:g} of the largest; the seeds are the same). Time and memory are the whole process's, imports
included.

| program | numbers | time | PyTorch's | memory | PyTorch's |
|---|---|---:|---:|---:|---:|
{chr(10).join(kept)}
""" + (f"\n{mark}{rest}" if mark else "")
    return agreement.with_total(whole)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="parts of names, separated by commas")
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    python = install()
    wanted = arguments.only.split(",")
    rows = []
    for program in sorted(PROGRAMS.glob("*.py")):
        if any(part in program.name for part in wanted):
            rows.append(row(program, python, arguments.repetitions))
            print(rows[-1], flush=True)
            page = ROOT / "docs" / "programs.md"
            page.write_text(report(page.read_text(), rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
