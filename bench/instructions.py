"""Instructions that a call of a tiny operator takes, counted by Valgrind, beside another build.

    python bench/instructions.py                              # of build/python
    python bench/instructions.py --before ../old/build/python # and of another state, with ratios
    python bench/instructions.py --only "a + b" --keep profile   # for callgrind_annotate

The cases are those of the suite `tiny` (cases.py), and importing taeda, less an empty Python. A
count is the mean over CALLS calls after WARM others; a loop around nothing is taken off. Counts do
not depend on what else the machine does, so that a difference of one percent is seen. They say
nothing of time spent waiting for memory, and Valgrind knows no AVX-512: what kernels are chosen
otherwise is not what is compared here.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
from process import ROOT

WARM, CALLS = 40, 100
EMPTY = "an empty loop"
IMPORT = "import taeda"


@cases.case("tiny", "dist(a, b)")
def dist(torch: Any) -> cases.Run:
    a, b = cases.tiny(torch)
    return lambda: torch.dist(a, b)


@cases.case("tiny", EMPTY)
def empty(torch: Any) -> cases.Run:
    return lambda: None


def count(library: str, only: str) -> None:
    """Runs the cases whose names contain `only`; callgrind writes one file for each."""
    marks = ctypes.CDLL(library)
    gc.disable()
    for name in cases.CASES["tiny"]:
        if only in name or name == EMPTY:
            run, _ = cases.make("tiny", name, "taeda")
            repeat(run, WARM)
            marks.start_counting()
            repeat(run, CALLS)
            marks.stop_counting(name.encode())


def repeat(run: Callable[[], Any], times: int) -> None:
    for _ in range(times):
        run()


def environment(build: Path, folder: Path) -> dict[str, str]:
    """Of a process that finds a build, and modules compiled in an earlier one."""
    keep = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    compiled = {"PYTHONPYCACHEPREFIX": str(folder / "compiled"), "PYTHONHASHSEED": "0"}
    return keep | compiled | {"PYTHONPATH": str(build)}


def valgrind(build: Path, out: Path, started: bool, command: list[str]) -> list[Path]:
    """The files that callgrind writes of a Python command, counting from its start or when told."""
    out.mkdir(parents=True, exist_ok=True)
    flags = [f"--instr-atstart={'yes' if started else 'no'}", f"--callgrind-out-file={out}/counts"]
    subprocess.run(
        ["valgrind", "-q", "--tool=callgrind", *flags, sys.executable, *command],
        env=environment(build, out.parent), check=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    return sorted(out.glob("counts*"))


def total(file: Path) -> int:
    found = re.search(r"^(?:summary|totals): (\d+)", file.read_text(), re.M)
    assert found, file
    return int(found[1])


def import_cost(build: Path, folder: Path) -> float:
    """Instructions of an import, less those of Python's start; modules are compiled before."""
    commands = {"import": ["-c", "import taeda"], "start": ["-c", ""]}
    command = [sys.executable, *commands["import"]]
    subprocess.run(command, env=environment(build, folder), check=True)
    totals = {
        name: total(valgrind(build, folder / name, True, command)[0])
        for name, command in commands.items()
    }
    return totals["import"] - totals["start"]


def measure(build: Path, folder: Path, library: str, only: str) -> dict[str, float]:
    worker = [str(Path(__file__)), "--worker", library, "--only", only]
    found = {}
    for file in valgrind(build, folder / "cases", False, worker):
        if name := re.search(r"^desc: Trigger: Client Request: (.*)$", file.read_text(), re.M):
            found[name[1]] = total(file) / CALLS
    loop = found.pop(EMPTY)
    found = {name: instructions - loop for name, instructions in found.items()}
    if only in IMPORT:
        found[IMPORT] = import_cost(build, folder)
    return found


def compiled(folder: Path) -> str:
    library = folder / "callgrind.so"
    source = str(ROOT / "bench" / "callgrind.cc")
    subprocess.run(["c++", "-O2", "-shared", "-fPIC", source, "-o", str(library)], check=True)
    return str(library)


def show(now: dict[str, float], before: dict[str, float]) -> None:
    print("| case | before | now | ratio |\n|---|---:|---:|---:|")
    for name, instructions in now.items():
        old = before.get(name, float("nan"))
        print(f"| {name} | {old:,.0f} | {instructions:,.0f} | {instructions / old:.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "python")
    parser.add_argument("--before", type=Path, help="the other build's folder `python`")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--keep", type=Path, help="keep callgrind's files in this folder")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return count(args.worker, args.only)
    if not shutil.which("valgrind"):
        sys.exit("Valgrind is needed (apt install valgrind)")
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.keep or Path(scratch)
        library = compiled(Path(scratch))
        builds = {"now": args.build, "before": args.before}
        found = {
            state: measure(build.resolve(), folder / state, library, args.only) if build else {}
            for state, build in builds.items()
        }
    show(found["now"], found["before"])


if __name__ == "__main__":
    main()
