"""Compiles the kernels for CUDA devices and checks what came of it: `make cuda-check`.

PTX must be of a version that drivers since 550 accept, and dense kernels must load and store their
arrays in the widest pieces. For each architecture no kernel may spill registers, or take more of
them than tools/data/cuda_registers.txt allows, which lists those above the limit for all. Nothing
here needs a card. Prints a line for each family of units, exits 1 after a fault. What was compiled
is kept under .cache/nvrtc: a run that was stopped goes on from there.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import nvrtc  # noqa: E402
import ptxas  # noqa: E402
from cuda_units import emit as units  # noqa: E402

NEWEST_PTX = (8, 4)
ARCHITECTURES = ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"]
BUDGET = ROOT / "tools" / "data" / "cuda_registers.txt"
ENTRY = re.compile(r"^\.visible \.entry (\w+)\(", re.M)
# Bytes of one load or store: ld.global.v4.f32, st.global.u16
ACCESS = re.compile(r"\b(ld|st)\.global(?:\.nc)?(?:\.v(\d))?\.[a-z](\d+)")
DENSE = re.compile(r"_(b|u8|i8|i16|i32|i64|f16|bf16|f32|f64|c64|c128)$")
# The macros of units: a name, its parameters, its body; the names of kernels in that; uses.
MACRO = re.compile(r"^#define (\w+)\(([^)]*)\)((?:.*\\\n)*.*\n)", re.M)
KERNEL = re.compile(r"TD_GLOBAL\(([\w#]+),")
CALL = re.compile(r"^(TD_\w+)\(([^;{}]*?)\)", re.M)
Macro = tuple[list[str], list[str]]
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


def kernels_in(ptx: str) -> dict[str, str]:
    """Name -> PTX of each kernel."""
    _, *parts = ENTRY.split(ptx)
    return {
        name: text[: text.index("\n}")] for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


def ptx_faults(ptx: str, wanted: Iterable[str]) -> Iterator[str]:
    """What is wrong with a unit's PTX, which should have the kernels `wanted`."""
    if version_of(ptx) > NEWEST_PTX:
        yield f"PTX {version_of(ptx)}: drivers before CUDA 12.5 refuse what is above {NEWEST_PTX}"
    kernels, wanted = kernels_in(ptx), set(wanted)
    yield from (f"{name}: not in the PTX" for name in sorted(wanted - kernels.keys()))
    yield from (f"{name}: not found in its unit" for name in sorted(kernels.keys() - wanted))
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
    for name, usage in ptxas.usages(log).items():
        if usage.spill_bytes:
            yield f"{name} on {architecture}: spills {usage.spill_bytes} bytes"
        if usage.registers > named.get(name, limit):
            yield f"{name} on {architecture}: {usage.registers} registers"


@functools.cache
def _macros_of_headers() -> dict[str, Macro]:
    return {k: m for header in nvrtc.all_headers().values() for k, m in macros_in(header).items()}


def macros_in(text: str) -> dict[str, Macro]:
    """Name -> parameters and what it names, of each macro that defines kernels."""
    defined = ((name, given.split(","), KERNEL.findall(body)) for name, given, body in
               MACRO.findall(text))  # fmt: skip
    return {
        name: ([p.strip() for p in parameters], named)
        for name, parameters, named in defined
        if named and name != "TD_GLOBAL"
    }


def kernels_of(text: str) -> list[str]:
    """The kernels that a unit defines, itself or by macros."""
    macros = _macros_of_headers() | macros_in(text)
    found = list[str]()
    for name, given in CALL.findall(MACRO.sub("", text)):
        if name == "TD_GLOBAL":
            found.append(given.split(",")[0])
        elif name in macros:
            parameters, named = macros[name]
            # Parameters that name a kernel come before those that are types with commas in them.
            values = dict(zip(parameters, map(str.strip, given.split(","))))
            parts = (kernel.split("##") for kernel in named)
            found += ["".join(values.get(part, part) for part in kernel) for kernel in parts]
    return found


def check_ptx(compiler: nvrtc.Nvrtc, name: str, text: str) -> list[str]:
    """What is wrong with the PTX of the unit."""
    try:
        ptx = compiler.compile(text, nvrtc.LOWEST, name)
    except nvrtc.CompileError as error:
        return [str(error)]
    return [*ptx_faults(ptx, kernels_of(text))]


def check_unit(compiler: ptxas.Compiler, name: str, text: str, archs: list[str]) -> list[str]:
    """What is wrong with that, and with the unit's cubins."""
    faults = check_ptx(compiler.nvrtc, name, text)
    try:
        for architecture in archs:
            faults += usage_faults(compiler.cubin(name, text, architecture)[1], architecture)
    except nvrtc.CompileError as error:
        faults.append(str(error))
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architectures", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--units", default="", help="only those whose names match this expression")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    compiler = ptxas.Compiler.find()
    if compiler is None:
        print(ptxas.MISSING)
        return 1
    chosen = {name: text for name, text in units().items() if re.search(args.units, name)}
    families = defaultdict[str, list[str]](list)
    with nvrtc.processes(args.jobs) as pool:
        work = {
            n: pool.submit(check_unit, compiler, n, t, args.architectures)
            for n, t in chosen.items()
        }
        for name, result in work.items():
            families[name.split("_")[0].removesuffix(".cu")] += result.result()
    for family, faults in families.items():
        outcome = "FAILED" if faults else "ok    "
        print("\n".join([f"{outcome} {family}", *faults]))
    seconds = sum(os.times()[:4])
    wrong = sum(map(len, families.values()))
    print(f"{len(chosen)} units, {wrong} faults, {seconds:.0f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
