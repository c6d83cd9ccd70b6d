"""Packs the PTX of all kernels into one file: `python tools/pack_kernels.py OUT`.

libtaeda reads it beside itself (src/device/kernel_file.h) when a device is asked for a kernel.
PTX is repetitive in its own way: lines that differ in registers only. So a line becomes the number
of its template and what says its registers, in two streams that zlib then takes; a kernel is found
by where it begins in both. A register is said by how many others of its kind were named since (move
to front), a new one by 0 and its number's difference from the last new one's plus 1. Registers are
numbered anew first, in each function in the order of their first use, so that this is mostly 0.

    magic, u32 families; of each u32 bytes packed, u32 bytes raw, its types ("f32 f16"), 32 bytes
    the families, by zlib: u32 templates, kernels, bytes of templates, of the index, of ids; these
    texts and streams, and that of registers

Kernels whose units match --tail are not compiled: the file has their text, and that of all headers,
in a family "text", for NVRTC on the machine that uses them (src/device/kernel_compiler.h). A
kernel's text is then the name of its unit; names of headers begin with &.

The index has a line for each kernel: its name, where it begins in both streams, how many lines it
has, and which text goes before it, one of those named #0, #1, ...
"""

from __future__ import annotations

import argparse
import re
import struct
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import cuda_check  # noqa: E402
import cuda_units  # noqa: E402
import nvrtc  # noqa: E402

MAGIC = b"TDKERN2\n"
# What stands in a template for the kernel's name, and for a number of the n-th kind.
NAME, NUMBER = "\x01", 0x10
KINDS = [f"%{kind}{of}" for kind in "r rd f fd p rs rc".split() for of in ("", "<")]
KINDS += ["$L__BB0_"]
REGISTER = re.compile(r"(%[a-z]+<?|\$L__BB0_)(\d+)")
FUNCTION = re.compile(r"^(?=(?:\.visible |\.weak )?\.(?:entry|func)\b)", re.M)
# One, with its body or without.
NAMED = re.compile(r"[^(]*?\.(entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+).*?^([;}])\n", re.M | re.S)


def varint(n: int) -> bytes:
    """Seven bits a byte, the low ones first; the top bit says that more follow."""
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes([*out, n])


class Recent:
    """The numbers of one kind, the one that was named last at the end."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.newest = 0

    def said(self, n: int) -> bytes:
        if n in self.numbers:
            at = self.numbers.index(n)
            back = len(self.numbers) - at
            self.numbers.append(self.numbers.pop(at))
            return varint(back)
        step, self.newest = n - self.newest - 1, n
        self.numbers.append(n)
        return varint(0) + varint(2 * step if step >= 0 else -2 * step - 1)


def renumbered(text: str) -> str:
    """The same PTX with the registers of each function counted from 1 as they are first named."""

    def one(function: str) -> str:
        numbers: dict[str, dict[str, int]] = {}

        def rename(found: re.Match[str]) -> str:
            if found[1] not in KINDS or found[1].endswith("<"):
                return found[0]
            known = numbers.setdefault(found[1], {})
            return f"{found[1]}{known.setdefault(found[2], len(known) + 1)}"

        return REGISTER.sub(rename, function)

    return "".join(map(one, FUNCTION.split(text)))


@dataclass
class Family:
    types: str
    templates: dict[str, int] = field(default_factory=dict)
    index: list[str] = field(default_factory=list)
    preludes: dict[str, int] = field(default_factory=dict)
    ids: bytearray = field(default_factory=bytearray)
    numbers: bytearray = field(default_factory=bytearray)

    def add(self, name: str, text: str, prelude: int = -1) -> None:
        begin, recent = (len(self.ids), len(self.numbers)), [Recent() for _ in KINDS]

        def note(found: re.Match[str]) -> str:
            if found[1] not in KINDS:
                return found[0]
            kind = KINDS.index(found[1])
            self.numbers += recent[kind].said(int(found[2]))
            return found[1] + chr(NUMBER + kind)

        lines = text.splitlines()
        for line in lines:
            template = REGISTER.sub(note, line.replace(name, NAME))
            self.ids += varint(self.templates.setdefault(template, len(self.templates)))
        self.index.append(f"{name} {begin[0]} {begin[1]} {len(lines)} {prelude}")

    def add_kernel(self, name: str, head: str, entry: str) -> None:
        """With what goes before all kernels of its unit."""
        if head not in self.preludes:
            self.preludes[head] = len(self.preludes)
            self.add(f"#{self.preludes[head]}", head)
        self.add(name, re.sub(r"\$L__BB\d+_", "$L__BB0_", entry), self.preludes[head])

    def packed(self) -> tuple[bytes, int]:
        templates = "".join(f"{t}\n" for t in self.templates).encode()
        index = "".join(f"{line}\n" for line in self.index).encode()
        counts = len(self.templates), len(self.index), len(templates), len(index), len(self.ids)
        raw = struct.pack("<5I", *counts) + templates + index + self.ids + self.numbers
        return zlib.compress(raw, 9), len(raw)


def packed(families: list[Family]) -> bytes:
    parts = [family.packed() for family in families]
    rows = [
        struct.pack("<2I32s", len(data), raw, family.types.encode())
        for family, (data, raw) in zip(families, parts, strict=True)
    ]
    head = MAGIC + struct.pack("<I", len(families))
    return b"".join([head, *rows, *(data for data, _ in parts)])


def families() -> dict[str, Family]:
    """Empty ones, by the word in their units' names."""
    types: dict[str, list[str]] = {}
    for compute in (c for row in cuda_units.COMPUTE_TYPES.values() for c in row):
        types.setdefault(compute.family, []).extend(compute.stored)
    return {name: Family(" ".join(suffixes)) for name, suffixes in types.items()}


@dataclass
class Parts:
    """A unit's PTX: what stands outside of functions, functions that are called, and kernels."""

    head: str
    declared: dict[str, str] = field(default_factory=dict)
    defined: dict[str, str] = field(default_factory=dict)
    kernels: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def of(ptx: str) -> Parts:
        head, *functions = FUNCTION.split(ptx)
        parts = Parts(head)
        for function in functions:
            found = NAMED.match(function)
            assert found, function[:80]
            text, what, name, end = found[0], found[1], found[2], found[3]
            kind = parts.kernels if what == "entry" else parts.defined
            (kind if end == "}" else parts.declared)[name] = text
            parts.head += function[len(text) :]
        return parts

    def before(self, kernel: str) -> str:
        """What the module of one kernel has besides it: no function that it does not call."""
        called, texts = list[str](), [self.kernels[kernel]]
        while texts:
            words = set(re.findall(r"[\w$]+", texts.pop()))
            fresh = [name for name in self.defined if name in words and name not in called]
            called += fresh
            texts += [self.defined[name] for name in fresh]
        declared = (text for name, text in self.declared.items() if name in called)
        defined = (text for name, text in self.defined.items() if name in called)
        return "".join([self.head, *declared, *defined])


def add_unit(ptx: str, families: Iterable[Family]) -> None:
    """Each kernel goes to the family of the type that its name ends in."""
    lines = (re.sub(r"\s*//.*", "", line) for line in ptx.splitlines())
    unit = Parts.of(renumbered("".join(f"{line}\n" for line in lines if line.strip())))
    for name, text in unit.kernels.items():
        kind = re.sub("_(any|list)$", "", name).rsplit("_", 1)[1]
        family = next(f for f in families if kind in f.types.split())
        family.add_kernel(name, unit.before(name), text)


def tail(units: dict[str, str], headers: dict[str, str]) -> Family:
    """Units as text, with the headers that they include."""
    family = Family("text")
    for unit, text in units.items():
        family.add(unit, text)
        for kernel in cuda_check.kernels_of(text):
            family.add(kernel, unit)
    for name, text_of_header in headers.items():
        family.add(f"&{name}", text_of_header)
    return family


def compiled(compiler: nvrtc.Nvrtc, texts: dict[str, str], jobs: int) -> Iterator[tuple[str, str]]:
    """(name, PTX) of every unit."""
    with nvrtc.processes(jobs) as pool:
        work = {n: pool.submit(compiler.compile, t, nvrtc.LOWEST, n) for n, t in texts.items()}
        for name, result in work.items():
            yield name, result.result()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tail", default="", help="units that stay text, an expression")
    args = parser.parse_args()
    path = nvrtc.find_library()
    if path is None:
        print("no NVRTC: pip install -r tools/requirements-cuda.txt")
        return 1
    found, units = families(), cuda_check.units()
    compiler = nvrtc.Nvrtc(path)
    left = {n: t for n, t in units.items() if args.tail and re.search(args.tail, n)}
    for _, ptx in compiled(compiler, {n: t for n, t in units.items() if n not in left}, args.jobs):
        add_unit(ptx, found.values())
    count = sum(len(family.index) - len(family.preludes) for family in found.values())
    later = [tail(left, nvrtc.all_headers())] if left else []
    data = packed([*found.values(), *later])
    args.out.write_bytes(data)
    more = (
        f" and {sum(map(len, map(cuda_check.kernels_of, left.values())))} as text" if left else ""
    )
    print(f"{count} kernels{more}, {len(data):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
