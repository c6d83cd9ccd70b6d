"""Copies a shared library without the functions that nobody calls.

    prune_library.py libopenblas.so build/lib/libopenblas.so --keep openblas_routines.txt

What a linker does with --gc-sections, for a library (ELF, x86-64, C or Fortran) that comes linked.
A function stays when a pattern of the list matches its name, or when what stays refers to it: a
function, a variable that holds its address, or data that no symbol names. A reference is four bytes
that may belong to a call, a jump or an operand relative to the instruction, and that, as their
displacement, lead to a function's first byte, to its PLT entry or to a variable's neighbourhood.
All bytes count, also those that are no instruction: too many are found, never too few. A part that
the compiler split off (`name.cold`) stays with its function.

Addresses do not change: pages without a function that stays are left out of the file, the segment
is split around them, and the loader leaves holes there. Symbols of what went become undefined, so
that dlsym does not find them. Symbol and unwinding tables are stripped: an exception cannot pass.
"""

from __future__ import annotations

import argparse
import bisect
import fnmatch
import os
import re
import struct
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PAGE = 4096
MIN_HOLE = 2 * PAGE  # each hole is one more mapping of the process
# A displacement may lead beside its variable: an index begins at one, an immediate follows it.
NEAR = 64
HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SEGMENT = struct.Struct("<IIQQQQQQ")  # type, flags, offset, address, physical, file, memory, align
SECTION = struct.Struct("<IIQQQQIIQQ")  # name, type, flags, address, offset, size, link, ...
SYMBOL = struct.Struct("<IBBHQQ")  # name, info, other, section, value, size
RELOCATION = struct.Struct("<QQq")  # offset, info, addend
DISPLACEMENT = struct.Struct("<i")
PT_GNU_EH_FRAME = 0x6474E550
PT_LOAD, PF_X, STT_OBJECT, STT_FUNC, STB_WEAK, X86_64, JUMP_SLOT = 1, 1, 1, 2, 2, 62, 7
# What a displacement of four bytes follows: call, jmp, jcc, or ModR/M with mode 0 and register 5.
BEFORE_DISPLACEMENT = re.compile(
    rb"[\xe8\xe9\x05\x0d\x15\x1d\x25\x2d\x35\x3d]|(?<=\x0f)[\x80-\x8f]"
)
JUMP_THROUGH_SLOT = b"\xff\x25"  # jmp *displacement(%rip), an entry of the PLT


@dataclass
class Elf:
    """A library's bytes and headers; sections by name as [name, type, flags, address, ...]."""

    data: bytes
    header: list = field(init=False)
    segments: list[list[int]] = field(init=False)
    sections: dict[str, list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self.header = list(HEADER.unpack_from(self.data))
        if self.header[0][:5] != b"\x7fELF\x02" or self.header[2] != X86_64:
            raise ValueError("not a library for x86-64")
        first, count = self.header[5], self.header[10]
        table = self.data[first : first + count * SEGMENT.size]
        self.segments = [list(row) for row in SEGMENT.iter_unpack(table)]
        first, count = self.header[6], self.header[12]
        table = self.data[first : first + count * SECTION.size]
        rows = [list(row) for row in SECTION.iter_unpack(table)]
        names = self.bytes_of(rows[self.header[13]])
        self.sections = {text_at(names, row[0]): row for row in rows}
        if len(self.sections) != len(rows):
            raise ValueError("two sections of one name")

    def bytes_of(self, section: list[int]) -> bytes:
        return self.data[section[4] : section[4] + section[5]]

    def symbols(self, table: str) -> Iterator[tuple[str, int, int, int]]:
        """Name, type, address and size of each symbol of the table, in its order."""
        strings = self.bytes_of(self.sections[".dynstr" if table == ".dynsym" else ".strtab"])
        for name, info, _, _, value, size in SYMBOL.iter_unpack(
            self.bytes_of(self.sections[table])
        ):
            yield text_at(strings, name), info & 15, value, size


def text_at(strings: bytes, offset: int) -> str:
    return strings[offset : strings.index(b"\0", offset)].decode()


class Functions:
    """The functions of .text in the order of their addresses; each reaches to the next one."""

    def __init__(self, elf: Elf) -> None:
        text = elf.sections[".text"]
        self.begin, self.end = text[3], text[3] + text[5]
        self.names: defaultdict[int, set[str]] = defaultdict(set)
        self.starts: list[int] = []
        found = sorted(
            (value, size, name)
            for name, kind, value, size in elf.symbols(".symtab")
            if kind == STT_FUNC and self.begin <= value < self.end
        )
        inside = 0
        for value, size, name in found:
            if not self.starts or value >= max(inside, self.starts[-1] + 1):
                self.starts.append(value)
            inside = max(inside, value + size)
            self.names[self.starts[-1]].add(name)
        self.entries = {value: self.at(value) for value, _, _ in found}

    def at(self, address: int) -> int:
        """The start of the function that `address` lies in; the first one's is all before it."""
        return self.starts[max(bisect.bisect_right(self.starts, address) - 1, 0)]

    def stop(self, start: int) -> int:
        following = bisect.bisect_right(self.starts, start)
        return self.starts[following] if following < len(self.starts) else self.end


class Variables:
    """The variables that have symbols, tables of functions say, in the order of their addresses."""

    def __init__(self, elf: Elf, functions: Functions) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []
        for value, end in sorted(
            (value, value + size)
            for _, kind, value, size in elf.symbols(".symtab")
            if kind == STT_OBJECT and not functions.begin <= value < functions.end
        ):
            if self.ends and value < self.ends[-1]:  # another name of it, or of a part
                self.ends[-1] = max(self.ends[-1], end)
            else:
                self.starts.append(value)
                self.ends.append(end)

    def at(self, address: int) -> int | None:
        """The start of the variable that `address` lies in."""
        i = bisect.bisect_right(self.starts, address) - 1
        return self.starts[i] if i >= 0 and address < self.ends[i] else None

    def near(self, address: int) -> list[int]:
        """The starts of the variables less than NEAR bytes from `address`."""
        i = bisect.bisect_right(self.ends, address - NEAR)
        return self.starts[i : bisect.bisect_left(self.starts, address + NEAR)]


def references(elf: Elf, functions: Functions, variables: Variables) -> dict[int, set[int]]:
    """Start of a function -> starts of functions and variables that it may refer to."""
    targets = functions.entries | plt_entries(elf, functions)
    text = elf.bytes_of(elf.sections[".text"])
    found: defaultdict[int, set[int]] = defaultdict(set)
    for match in BEFORE_DISPLACEMENT.finditer(text, 0, len(text) - 4):
        at = match.end()
        target = functions.begin + at + 4 + DISPLACEMENT.unpack_from(text, at)[0]
        if target in targets:
            found[functions.at(functions.begin + at - 1)].add(targets[target])
        elif near := variables.near(target):
            found[functions.at(functions.begin + at - 1)].update(near)
    return found


def plt_entries(elf: Elf, functions: Functions) -> dict[int, int]:
    """Address of a PLT entry -> start of the library's own function that it jumps to."""
    values = [value for _, _, value, _ in elf.symbols(".dynsym")]
    slots = {
        offset: values[info >> 32]
        for offset, info, _ in relocations(elf)
        if info & 0xFFFFFFFF == JUMP_SLOT
    }
    plt = elf.sections[".plt"]
    code = elf.bytes_of(plt)
    entries = {}
    for at in range(0, len(code), 16):
        if code[at : at + 2] != JUMP_THROUGH_SLOT:
            continue
        slot = plt[3] + at + 6 + DISPLACEMENT.unpack_from(code, at + 2)[0]
        if slots.get(slot) in functions.entries:
            entries[plt[3] + at] = functions.entries[slots[slot]]
    return entries


def relocations(elf: Elf) -> Iterator[tuple[int, int, int]]:
    for name in (".rela.dyn", ".rela.plt"):
        yield from RELOCATION.iter_unpack(elf.bytes_of(elf.sections[name]))


def pointers(elf: Elf, functions: Functions, variables: Variables) -> dict[int | None, set[int]]:
    """Start of a variable -> starts of what the loader writes the addresses of into it.

    None stands for data outside of variables, such as the global offset table.
    """
    values = [value for _, _, value, _ in elf.symbols(".dynsym")]
    found: defaultdict[int | None, set[int]] = defaultdict(set)
    for offset, info, addend in relocations(elf):
        address = values[info >> 32] + addend
        if info & 0xFFFFFFFF == JUMP_SLOT:
            continue
        if functions.begin <= address < functions.end:
            found[variables.at(offset)].add(functions.at(address))
        else:
            found[variables.at(offset)].update(variables.near(address))
    return found


def reachable(elf: Elf, functions: Functions, patterns: list[str]) -> set[int]:
    """Starts of the functions that stay. ValueError when no function has a name of the list."""
    variables = Variables(elf, functions)
    in_data = pointers(elf, functions, variables)
    wanted = in_data[None] | {functions.starts[0]}
    for pattern in patterns:
        matches = re.compile(fnmatch.translate(pattern)).match
        found = {start for start, names in functions.names.items() if any(map(matches, names))}
        if not found:
            raise ValueError(f"the library has no function {pattern}")
        wanted |= found
    split: defaultdict[str, set[int]] = defaultdict(set)
    for start, names in functions.names.items():
        for name in names:
            split[name.partition(".")[0]].add(start)
    graph = references(elf, functions, variables) | in_data
    stays: set[int] = set()
    while wanted:
        start = wanted.pop()
        stays.add(start)
        parts = (split[name.partition(".")[0]] for name in functions.names.get(start, ()))
        wanted |= graph.get(start, set()).union(*parts) - stays
    return stays & functions.names.keys()


def holes(functions: Functions, stays: set[int]) -> list[tuple[int, int]]:
    """Runs of whole pages, as addresses, where nothing stays."""
    found, last = [], functions.begin
    for start in [*sorted(stays), functions.end]:
        first, stop = -(-last // PAGE) * PAGE, start // PAGE * PAGE
        if stop - first >= MIN_HOLE:
            found.append((first, stop))
        if start < functions.end:
            last = max(last, functions.stop(start))
    return found


def split_range(begin: int, end: int, gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """[begin, end) without the gaps inside it."""
    inside = [gap for gap in gaps if begin <= gap[0] and gap[1] <= end]
    edges = [begin, *(edge for gap in inside for edge in gap), end]
    return list(zip(edges[::2], edges[1::2]))


class Holes:
    """Pages left out of the code segment, as addresses, and where what follows them moves."""

    def __init__(self, elf: Elf, gaps: list[tuple[int, int]]) -> None:
        (self.code,) = (row for row in elf.segments if row[0] == PT_LOAD and row[1] & PF_X)
        self.to_offset = self.code[2] - self.code[3]
        self.gaps = gaps
        self.cuts = [(begin + self.to_offset, end + self.to_offset) for begin, end in gaps]

    def moved(self, offset: int) -> int:
        return offset - sum(end - begin for begin, end in self.cuts if end <= offset)

    def parts(self, address: int, size: int) -> list[tuple[int, int, int]]:
        """Address, offset and size of each part that the range is split into."""
        ranges = split_range(address, address + size, self.gaps)
        return [(a, self.moved(a + self.to_offset), end - a) for a, end in ranges]

    def segments(self, elf: Elf) -> Iterator[bytes]:
        for row in elf.segments:
            kind, flags, offset, address, physical, size, memory, align = row
            if kind in (PT_LOAD, PT_GNU_EH_FRAME) and not memory:
                continue  # it held the unwinding tables
            align = PAGE if kind == PT_LOAD else align
            if row is not self.code:
                offset = self.moved(offset)
                yield SEGMENT.pack(kind, flags, offset, address, physical, size, memory, align)
                continue
            for start, offset, length in self.parts(address, size):
                yield SEGMENT.pack(kind, flags, offset, start, start, length, length, align)

    def sections(self, elf: Elf) -> list[bytes]:
        """Headers: those of .text's later parts come last, the indices of others stay."""
        first, later = [], []
        for name, row in elf.sections.items():
            if name != ".text":
                first.append(SECTION.pack(*row[:4], self.moved(row[4]), *row[5:]))
                continue
            parts = [SECTION.pack(*row[:3], *p, *row[6:]) for p in self.parts(row[3], row[5])]
            first.append(parts[0])
            later += parts[1:]
        return first + later


def undefine(data: bytearray, elf: Elf, symbols: set[int]) -> None:
    """Makes dynamic symbols undefined; weak, as a strong one ends the process under LD_BIND_NOW."""
    for index in symbols:
        at = elf.sections[".dynsym"][4] + index * SYMBOL.size
        name, info, other, *_ = SYMBOL.unpack_from(data, at)
        SYMBOL.pack_into(data, at, name, STB_WEAK << 4 | info & 15, other, 0, 0, 0)


def without(elf: Elf, gaps: list[tuple[int, int]], undefined: set[int]) -> bytes:
    """The library without the pages of `gaps` and with the dynamic symbols `undefined`."""
    left_out = Holes(elf, gaps)
    data = bytearray(elf.data)
    undefine(data, elf, undefined)
    header = list(elf.header)
    out = bytearray(b"".join(data[b:e] for b, e in split_range(0, header[6], left_out.cuts)))
    out += bytes(-len(out) % 8)
    segments, sections = list(left_out.segments(elf)), left_out.sections(elf)
    header[5], header[10] = len(out), len(segments)
    out += b"".join(segments)
    header[6], header[12] = len(out), len(sections)
    out += b"".join(sections)
    HEADER.pack_into(out, 0, *header)
    return bytes(out)


def stripped(library: Path, strip: str) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / library.name
        tables = ["--remove-section=.eh_frame", "--remove-section=.eh_frame_hdr"]
        subprocess.run([strip, "--strip-unneeded", *tables, "-o", copy, library], check=True)
        return copy.read_bytes()


def prune(library: Path, patterns: list[str], strip: str = "strip") -> bytes:
    elf = Elf(library.read_bytes())
    functions = Functions(elf)
    stays = reachable(elf, functions, patterns)
    small = Elf(stripped(library, strip))
    undefined = {
        index
        for index, (_, _, value, _) in enumerate(small.symbols(".dynsym"))
        if functions.begin <= value < functions.end and functions.at(value) not in stays
    }
    return without(small, holes(functions, stays), undefined)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--keep", type=Path, required=True, help="a pattern of names a line")
    parser.add_argument("--strip", default="strip", help="the program that strips")
    args = parser.parse_args()
    lines = args.keep.read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    temporary = args.result.with_name(args.result.name + ".new")
    temporary.write_bytes(prune(args.library, patterns, args.strip))
    os.chmod(temporary, 0o755)
    temporary.replace(args.result)  # which may be a link to the library
    return 0


if __name__ == "__main__":
    sys.exit(main())
