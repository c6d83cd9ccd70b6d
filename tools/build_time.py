"""How long a build takes: from nothing, and after one change to an operator.

    build_time.py [--build DIR] [--jobs N] [CASE ...]

Copies the working tree to DIR/source, so that nothing here is touched, builds it in DIR/objects
without ccache, makes one change there after another and builds each, then takes it back. Prints for
each case the CPU seconds of everything that ran, how many commands that were, the seconds of the
longest chain (configuring, the slowest compilation, the links that wait for each other) and how long
two free cores would take at best: the larger of the chain and half of the CPU seconds. CPU seconds
depend little on what else the machine does; the clock does.

The first run builds everything; later runs only what was changed in the meantime.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TARGET_S = 20  # of each case, on two cores

POINTWISE = """
- op: build_time_pointwise(Tensor self, Tensor other) -> Tensor
  aten: none
  pointwise: BuildTimePointwise
  types: real
  promote: float
  grad:
    self: gy * log1p(where((self == 0) & (other <= -1), 0, other))
    other: gy * self / (other + 1)
"""
FUNCTOR = """
// x log(1 + y)
struct BuildTimePointwise {
  template <class V>
  TD_FN V operator()(V x, V y) const {
    return select(isnan(y), y, select(x == 0, V(0), x * log1p(y)));
  }
};
"""
KERNEL = """
- op: build_time_kernel(Tensor self) -> (Tensor mantissa, Tensor exponent)
  batch: leading
  aten: none
  variants: [out]
  types: floating
  kernel: build_time_kernel
  contiguous: [self]
  out:
    mantissa: ["self.sizes()", "self.dtype()"]
    exponent: ["self.sizes()", "int32"]
  no_definition: "measured only"
  grad: {self: "gy_mantissa / exp2(exponent)"}
  jvp: {mantissa: self_t / exp2(exponent)}
"""
COMPOSITE = """
- op: build_time_composite(Tensor self, Tensor other, Scalar p=2) -> Tensor
  aten: none
  types: inexact
  expr: return linalg_vector_norm(self - other, p, None, False)
"""
Change = Callable[[Path], dict[str, str]]  # of a source folder: file -> its new text


def _text(source: Path, file: str) -> str:
    return (source / file).read_text()


def add_pointwise(source: Path) -> dict[str, str]:
    """As xlog1py in docs/adding-an-operator.md."""
    table, functors = "ops/pointwise/arithmetic.yaml", "src/kernels/pointwise/exponential.h"
    return {
        table: _text(source, table) + POINTWISE,
        functors: _text(source, functors) + FUNCTOR,
    }


def add_kernel(source: Path) -> dict[str, str]:
    """As frexp in docs/adding-an-operator.md."""
    table, folder = "ops/pointwise/rounding.yaml", "src/kernels/cpu/pointwise"
    kernel = _text(source, f"{folder}/frexp.cc").replace("void frexp(", "void build_time_kernel(")
    return {
        table: _text(source, table) + KERNEL,
        f"{folder}/build_time_kernel.cc": kernel,
    }


def add_composite(source: Path) -> dict[str, str]:
    """As dist in docs/adding-an-operator.md."""
    table = "ops/reduce/norm.yaml"
    return {table: _text(source, table) + COMPOSITE}


def edit(file: str, old: str, new: str) -> Change:
    def change(source: Path) -> dict[str, str]:
        text = _text(source, file)
        if text.count(old) != 1:
            raise SystemExit(f"{file} should have this once: {old}")
        return {file: text.replace(old, new)}

    return change


CASES: dict[str, Change] = {
    "add-pointwise": add_pointwise,
    "add-kernel": add_kernel,
    "add-composite": add_composite,
    "edit-functor": edit(
        "src/kernels/pointwise/gelu.h",
        "return 0.5 * x * (1 + erf(",
        "return x * 0.5 * (1 + erf(",
    ),
    "edit-kernel": edit(
        "src/kernels/cpu/pointwise/frexp.cc", "int power = 0;", "int power = 1 - 1;"
    ),
    "edit-formula": edit(
        "ops/pointwise/arithmetic.yaml", "other: gy * self / (other + 1)", "other: gy * self / (1 + other)"
    ),
    "edit-composite": edit(
        "ops/reduce/norm.yaml", "linalg_vector_norm(self - other, p,", "linalg_vector_norm(other - self, p,"
    ),
}


class Cost(NamedTuple):
    cpu_s: float
    commands: dict[str, float]  # output -> CPU seconds
    chain_s: float
    clock_s: float

    @property
    def two_cores_s(self) -> float:
        return max(self.cpu_s / 2, self.chain_s)


# --- commands of the build, which run below this script ---


def record(log: Path, command: list[str]) -> int:
    """Runs a compiler or linker and notes its output and CPU seconds."""
    status = subprocess.call(command)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = command[command.index("-o") + 1]
    with log.open("a") as file:
        file.write(json.dumps([output, used.ru_utime + used.ru_stime]) + "\n")
    return status


def children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Build:
    def __init__(self, folder: Path, jobs: int):
        self.source, self.objects, self.jobs = folder / "source", folder / "objects", jobs
        self.log = folder / "commands.jsonl"
        self.ninja = shutil.which("ninja", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        self.environment = {**os.environ, "CCACHE_DISABLE": "1"}

    def copy_sources(self) -> None:
        """Makes the copy what the working tree is; what is the same keeps its time stamp."""
        listed = subprocess.check_output(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT
        )
        files = {name for name in listed.decode().split("\0") if (ROOT / name).is_file()}
        marker = self.source / ".build_time"  # what else is in the folder is not ours to delete
        if self.source.exists() and any(self.source.iterdir()) and not marker.exists():
            raise SystemExit(f"build_time: {self.source} is not a copy that this program has made")
        self.source.mkdir(parents=True, exist_ok=True)
        marker.touch()
        for path in [p for p in self.source.rglob("*") if p.is_file() and p != marker]:
            if str(path.relative_to(self.source)) not in files:
                path.unlink()
        for name in files:
            self.write(name, (ROOT / name).read_bytes())

    def write(self, name: str, data: bytes) -> None:
        path = self.source / name
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def configure(self) -> None:
        launcher = f"{sys.executable};{Path(__file__).resolve()};--record;{self.log}"
        subprocess.run(
            ["cmake", "-G", "Ninja", "-S", str(self.source), "-B", str(self.objects), "-Wno-dev"]
            + [f"-DCMAKE_PREFIX_PATH={Path(sys.prefix)}", f"-DPython_EXECUTABLE={sys.executable}"]
            + [f"-DCMAKE_CXX_{tool}_LAUNCHER={launcher}" for tool in ("COMPILER", "LINKER")]
            + ["-DTAEDA_CCACHE=OFF", f"-DCMAKE_MAKE_PROGRAM={self.ninja}"],
            check=True,
            stdout=subprocess.DEVNULL,
            env=self.environment,
        )

    def run(self) -> Cost:
        self.log.unlink(missing_ok=True)
        before, start = children_s(), time.monotonic()
        command = [str(self.ninja), "-C", str(self.objects), f"-j{self.jobs}"]
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise SystemExit(done.stdout[-4000:] + done.stderr)
        cpu, clock = children_s() - before, time.monotonic() - start
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        commands = dict(json.loads(line) for line in lines)
        links = sum(s for name, s in commands.items() if name.endswith(".so"))
        compiled = {name: s for name, s in commands.items() if not name.endswith(".so")}
        others = cpu - sum(commands.values())  # CMake, the generator, the stubs
        slowest = max(compiled.values(), default=0)
        if any(name.endswith(".gch") for name in compiled):  # these come first
            slowest += max(s for name, s in compiled.items() if name.endswith(".gch"))
        return Cost(cpu, commands, others + slowest + links, clock)


def show(name: str, cost: Cost, verbose: bool) -> None:
    print(
        f"{name:16} {cost.cpu_s:8.1f} {len(cost.commands):9} {cost.chain_s:8.1f} "
        f"{cost.two_cores_s:10.1f} {cost.clock_s:8.1f}",
        flush=True,
    )
    if verbose:
        for output, seconds in sorted(cost.commands.items(), key=lambda row: -row[1]):
            print(f"    {seconds:6.2f} {output}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "build-time")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true", help="what each command took")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(CASES))
    args = parser.parse_args()
    if unknown := set(args.cases) - CASES.keys():
        parser.error(f"unknown case {', '.join(sorted(unknown))}")
    build = Build(args.build.resolve(), args.jobs)
    build.copy_sources()
    build.configure()
    print(f"{'':16} {'CPU s':>8} {'commands':>9} {'chain s':>8} {'2 cores s':>10} {'clock s':>8}")
    show("build", build.run(), verbose=False)
    slow = []
    for name in args.cases or CASES:
        changed = CASES[name](build.source)
        before = {file: (build.source / file) for file in changed}
        old = {file: path.read_bytes() for file, path in before.items() if path.exists()}
        for file, text in changed.items():
            build.write(file, text.encode())
        cost = build.run()
        show(name, cost, args.verbose)
        slow += [name] if cost.two_cores_s > TARGET_S else []
        for file, path in before.items():
            path.write_bytes(old[file]) if file in old else path.unlink()
        build.run()
    if slow:
        print(f"over the target of {TARGET_S} s: {', '.join(slow)}")
    return 1 if slow else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--record"]:
        sys.exit(record(Path(sys.argv[2]), sys.argv[3:]))
    sys.exit(main())
