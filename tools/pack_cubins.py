"""Packs cubins of all kernels, a file for each architecture: `python tools/pack_cubins.py FOLDER`.

The driver loads them as they are, where PTX has to be compiled for the card first. They are what
the optional wheel taeda-cuda holds (tools/make_cuda_wheel.py); src/device/cubin_file.h reads them.
tools/ptxas.py makes them; what it does not know is left out, and such a card compiles PTX.

    magic, u32 stamp, u32 bytes of the index; a line of the index for each module: where it begins
    in the file, its bytes packed and raw, the names of its kernels; the modules, each an .xz

The stamp is the CRC-32 of taeda_kernels.bin, whose kernels take the same arguments: cubins that
belong to other kernels are not used.
"""

from __future__ import annotations

import argparse
import lzma
import re
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import nvrtc  # noqa: E402
import ptxas  # noqa: E402
from cuda_check import ENTRY, units  # noqa: E402

MAGIC = b"TDCUBIN2"
# Cards run what is for an earlier architecture of the same major number: 8.6 and 8.9 that of 8.0.
ARCHITECTURES = "sm_75 sm_80 sm_90 sm_100 sm_120".split()
KERNELS = ROOT / ".cache" / "taeda_kernels.bin"
OFFSET_DIGITS = 10


@dataclass(frozen=True)
class Module:
    kernels: list[str]
    image: bytes


def xz(image: bytes) -> bytes:
    """Instructions take 16 bytes: what a byte is follows from its place in one."""
    words = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 4, "pb": 4}
    words["dict_size"] = max(4096, len(image))  # the reader takes as much memory
    return lzma.compress(image, check=lzma.CHECK_CRC32, filters=[words])


def packed(modules: list[Module], stamp: int) -> bytes:
    """The content of a file."""
    images = [xz(module.image) for module in modules]
    rows = [
        f"{len(image)} {len(module.image)} {' '.join(module.kernels)}\n"
        for module, image in zip(modules, images, strict=True)
    ]
    at = len(MAGIC) + 8 + sum(OFFSET_DIGITS + 1 + len(row) for row in rows)
    index = ""
    for row, image in zip(rows, images, strict=True):
        index += f"{at:0{OFFSET_DIGITS}} {row}"
        at += len(image)
    return MAGIC + struct.pack("<2I", stamp, len(index)) + index.encode() + b"".join(images)


def stamp_of(kernels: Path) -> int:
    return zlib.crc32(kernels.read_bytes())


def module(compiler: ptxas.Compiler, name: str, text: str, architecture: str) -> Module:
    kernels = ENTRY.findall(compiler.nvrtc.compile(text, nvrtc.LOWEST, name))
    return Module(kernels, compiler.cubin(name, text, architecture)[0])


def pack(
    compiler: ptxas.Compiler, units: dict[str, str], architecture: str, stamp: int, jobs: int = 1
) -> bytes:
    with nvrtc.processes(jobs) as pool:
        work = [pool.submit(module, compiler, n, t, architecture) for n, t in units.items()]
        return packed([one.result() for one in work], stamp)


def write(
    compiler: ptxas.Compiler,
    folder: Path,
    architectures: list[str],
    units: dict[str, str],
    stamp: int,
    jobs: int = 1,
) -> Iterator[str]:
    """Writes the files; a line for each architecture."""  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for architecture in architectures:
        if not compiler.knows(architecture):
            yield f"{architecture}: this ptxas does not know it: such cards compile PTX"
            continue
        data = pack(compiler, units, architecture, stamp, jobs)
        (folder / f"{architecture}.bin").write_bytes(data)
        yield f"{architecture}: {len(data) / 1e6:.2f} MB"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--architectures", nargs="*", default=ARCHITECTURES)
    parser.add_argument("--units", default="", help="only those whose names match this expression")
    parser.add_argument(
        "--kernels", type=Path, default=KERNELS, help="the file that they belong to"
    )
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    compiler = ptxas.Compiler.find()
    if compiler is None:
        print(ptxas.MISSING)
        return 1
    chosen = {n: t for n, t in units().items() if re.search(args.units, n)}
    stamp = stamp_of(args.kernels)
    for line in write(compiler, args.folder, args.architectures, chosen, stamp, args.jobs):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
