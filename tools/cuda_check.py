"""Compiles the kernels for CUDA devices and checks what came of it: `make cuda-check`.

PTX must be of a version that drivers since 550 accept, and dense kernels must load and store their
arrays in the widest pieces. For each architecture that NVRTC knows no kernel may spill registers,
or take more of them than tools/data/cuda_registers.txt allows, which lists those above the limit
for all. Nothing here needs a card. Prints a line for each family of units, exits 1 after a fault.
What was compiled is kept under .cache/nvrtc: a run that was stopped, or ended after --seconds,
goes on from there.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import nvrtc  # noqa: E402
from cuda_units import emit as units  # noqa: E402

NEWEST_PTX = (8, 4)
ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90"]
BUDGET = ROOT / "tools" / "data" / "cuda_registers.txt"
ENTRY = re.compile(r"\.visible \.entry (\w+)\(.*?^\}", re.M | re.S)
# Bytes of one load or store: ld.global.v4.f32, st.global.u16
ACCESS = re.compile(r"\b(ld|st)\.global(?:\.nc)?(?:\.v(\d))?\.[a-z](\d+)")
DENSE = re.compile(r"_(b|u8|i8|i16|i32|i64|f16|bf16|f32|f64|c64|c128)$")
SIZES = {"b": 1, "u8": 1, "i8": 1, "i16": 2, "f16": 2, "bf16": 2, "i32": 4, "f32": 4, "c128": 16}


def version_of(ptx: str) -> tuple[int, int]:
    found = re.search(r"^\.version (\d+)\.(\d+)", ptx, re.M)
    assert found, "PTX without a version"
    return int(found[1]), int(found[2])


def widest(text: str, what: str) -> int:
    """Bytes that the widest load (ld) or store (st) of a kernel moves."""
    return max(
        (
            int(count or 1) * int(bits) // 8
            for op, count, bits in ACCESS.findall(text)
            if op == what
        ),
        default=0,
    )


def ptx_faults(ptx: str, wanted: Iterable[str]) -> Iterator[str]:
    """What is wrong with a unit's PTX, which should have the kernels `wanted`."""
    if version_of(ptx) > NEWEST_PTX:
        yield f"PTX {version_of(ptx)}: drivers before CUDA 12.5 refuse what is above {NEWEST_PTX}"
    kernels = {found[1]: found[0] for found in ENTRY.finditer(ptx)}
    yield from (f"{name}: not in the PTX" for name in wanted if name not in kernels)
    for name, text in kernels.items():
        if dense := DENSE.search(name):
            bytes_wanted = 8 if SIZES.get(dense[1], 8) == 1 else 16
            # isnan of integers loads nothing
            if 0 < widest(text, "ld") < bytes_wanted:
                yield f"{name}: loads {widest(text, 'ld')} bytes at a time, not {bytes_wanted}"


def register_budget() -> tuple[int, dict[str, int]]:
    """The limit for all, and those of kernels above it."""
    rows = [line.split() for line in BUDGET.read_text().splitlines() if line and line[0] != "#"]
    named = {name: int(limit) for name, limit in rows}
    return named.pop("*"), named


def usage_faults(log: str, architecture: str) -> Iterator[str]:
    limit, named = register_budget()
    for name, usage in nvrtc.usages(log).items():
        if usage.spill_bytes:
            yield f"{name} on {architecture}: spills {usage.spill_bytes} bytes"
        if usage.registers > named.get(name, limit):
            yield f"{name} on {architecture}: {usage.registers} registers"


def kernels_of(text: str) -> list[str]:
    return re.findall(r"TD_GLOBAL\((\w+),", text)


def check_unit(
    compiler: nvrtc.Nvrtc, name: str, text: str, archs: list[str], until: float = float("inf")
) -> list[str] | None:
    """What is wrong with the unit; None where it has not been compiled and time is up."""
    if time.monotonic() > until and not all(
        compiler.is_cached(text, a, name) for a in ("compute_75", *archs)
    ):
        return None
    try:
        ptx, _ = compiler.compile(text, "compute_75", name)
        faults = [*ptx_faults(ptx.rstrip(b"\0").decode(), kernels_of(text))]
        for architecture in archs:
            _, log = compiler.compile(text, architecture, name)
            faults += usage_faults(log, architecture)
    except nvrtc.CompileError as error:
        return [str(error)]
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architectures", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--units", default="", help="only those whose names match this expression")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="compiles so long")
    args = parser.parse_args()
    path = nvrtc.find_library()
    if path is None:
        print("no NVRTC: pip install -r tools/requirements-cuda.txt")
        return 1
    compiler = nvrtc.Nvrtc(path, nvrtc.CACHE)
    chosen = {name: text for name, text in units().items() if re.search(args.units, name)}
    start, families = time.process_time(), defaultdict[str, list[str]](list)
    until, left = time.monotonic() + args.seconds, list[str]()
    with ThreadPoolExecutor(args.jobs) as pool:
        work = {
            n: pool.submit(check_unit, compiler, n, t, args.architectures, until)
            for n, t in chosen.items()
        }
        for name, result in work.items():
            faults, family = result.result(), name.split("_")[0]
            left += [family] if faults is None else []
            families[family] += faults or []
    for family, faults in families.items():
        outcome = "FAILED" if faults else "left  " if family in left else "ok    "
        print("\n".join([f"{outcome} {family}", *faults]))
    count = sum(len(kernels_of(text)) for text in chosen.values())
    seconds = time.process_time() - start
    wrong = sum(map(len, families.values()))
    print(f"{count} kernels, {len(chosen)} units, {wrong} faults, {seconds:.0f} s of CPU")
    if left:
        print(f"{len(left)} units left, of {len(chosen)}: run it again")
    return 1 if wrong or left else 0


if __name__ == "__main__":
    sys.exit(main())
