"""Packs cubins of all kernels, a file for each architecture: `python tools/pack_cubins.py FOLDER`.

The driver loads them as they are, where PTX has to be compiled for the card first. They are what
the optional wheel taeda-cuda holds (tools/make_cuda_wheel.py); src/device/cubin_file.h reads them.
NVRTC makes those that it knows; ptxas, of a newer toolkit, makes those of newer cards from the same
PTX that taeda has. Where there is no such ptxas they are left out, and such a card compiles PTX.

    magic, u32 stamp, u32 bytes of the index; a line of the index for each module: where it begins
    in the file, its bytes packed and raw, the names of its kernels; the modules, by zlib

The stamp is the CRC-32 of taeda_kernels.bin, whose kernels take the same arguments: cubins that
belong to other kernels are not used.
"""

from __future__ import annotations

import argparse
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

import cuda_units  # noqa: E402
import nvrtc  # noqa: E402
from pack_kernels import ENTRY  # noqa: E402

MAGIC = b"TDCUBIN1"
# Cards run what is for an earlier architecture of the same major number: 8.6 and 8.9 that of 8.0.
ARCHITECTURES = "sm_75 sm_80 sm_90 sm_100 sm_120".split()
PTX_OF = "compute_75"  # what taeda_kernels.bin has
KERNELS = ROOT / ".cache" / "taeda_kernels.bin"
OFFSET_DIGITS = 10


@dataclass(frozen=True)
class Module:
    kernels: list[str]
    image: bytes


def packed(modules: list[Module], stamp: int) -> bytes:
    """The content of a file."""
    images = [zlib.compress(module.image, 9) for module in modules]
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


class Ptxas:
    """NVIDIA's assembler, of any toolkit that is on the PATH or under /usr/local."""

    def __init__(self, path: str) -> None:
        self.path = path
        said = subprocess.run([path, "--help"], capture_output=True, text=True).stdout
        self.architectures = set(re.findall(r"'(sm_\d+)'", said))

    @staticmethod
    def find() -> Ptxas | None:
        toolkits = sorted(Path("/usr/local").glob("cuda*/bin/ptxas"), reverse=True)
        found = shutil.which("ptxas") or next(map(str, toolkits), None)
        return Ptxas(found) if found else None

    def compile(self, ptx: bytes, architecture: str) -> bytes:
        with tempfile.TemporaryDirectory() as name:
            source, image = Path(name) / "kernels.ptx", Path(name) / "kernels.cubin"
            source.write_bytes(ptx.rstrip(b"\0"))
            command = [self.path, f"--gpu-name={architecture}", str(source), "-o", str(image)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise nvrtc.CompileError(f"{architecture}: {done.stdout}{done.stderr}")
            return image.read_bytes()


class Compiler:
    """NVRTC, and ptxas for what it does not know."""

    def __init__(self, path: Path, cache: Path | None = nvrtc.CACHE) -> None:
        self.nvrtc, self.ptxas = nvrtc.Nvrtc(path, cache), Ptxas.find()

    def who(self, architecture: str) -> str:
        """What makes cubins of the architecture; "" for nothing."""
        if architecture in self.nvrtc.architectures:
            return "NVRTC"
        return "ptxas" if self.ptxas and architecture in self.ptxas.architectures else ""

    def module(self, name: str, text: str, architecture: str) -> Module:
        ptx, _ = self.nvrtc.compile(text, PTX_OF, name)
        kernels = ENTRY.findall(ptx.decode())
        if self.who(architecture) == "NVRTC":
            return Module(kernels, self.nvrtc.compile(text, architecture, name)[0])
        assert self.ptxas
        return Module(kernels, self.ptxas.compile(ptx, architecture))


def pack(
    compiler: Compiler, units: dict[str, str], architecture: str, stamp: int, jobs: int = 1
) -> bytes:
    with ThreadPoolExecutor(jobs) as pool:
        work = [pool.submit(compiler.module, n, t, architecture) for n, t in units.items()]
        return packed([one.result() for one in work], stamp)


def write(
    compiler: Compiler,
    folder: Path,
    architectures: list[str],
    units: dict[str, str],
    stamp: int,
    jobs: int = 1,
) -> Iterator[str]:
    """Writes the files; a line for each architecture."""  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for architecture in architectures:
        if not (who := compiler.who(architecture)):
            yield f"{architecture}: neither NVRTC nor a ptxas knows it: such cards compile PTX"
            continue
        data = pack(compiler, units, architecture, stamp, jobs)
        (folder / f"{architecture}.bin").write_bytes(data)
        yield f"{architecture}: {len(data) / 1e6:.2f} MB, by {who}"


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
    path = nvrtc.find_library()
    if path is None:
        print("no NVRTC: pip install -r tools/requirements-cuda.txt")
        return 1
    units = {n: t for n, t in cuda_units.emit().items() if re.search(args.units, n)}
    stamp = stamp_of(args.kernels)
    for line in write(Compiler(path), args.folder, args.architectures, units, stamp, args.jobs):
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
