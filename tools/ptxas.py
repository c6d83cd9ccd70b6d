"""ptxas, which makes cubins of PTX, each for one architecture of CUDA devices.

It comes from PyPI (tools/requirements-cuda.txt), where there is none any toolkit's serves. It knows
newer cards than NVRTC 12.4, whose PTX it takes, so that kernels are read by one compiler for all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from nvrtc import CACHE, LOWEST, Cache, CompileError, Nvrtc, find_library

MISSING = "no NVRTC or no ptxas: pip install -r tools/requirements-cuda.txt"


@dataclass(frozen=True)
class Usage:
    """What a kernel takes of an architecture."""

    registers: int
    spill_bytes: int
    stack_bytes: int


def usages(log: str) -> dict[str, Usage]:
    """What ptxas says of each kernel."""
    found = {}
    for part in log.split("Compiling entry function '")[1:]:
        numbers = [
            re.search(rf"(\d+) bytes {what}", part) for what in ("stack frame", "spill stores")
        ]
        stack, spills = (int(n.group(1)) if n else 0 for n in numbers)
        registers = re.search(r"Used (\d+) registers", part)
        if registers:
            found[part.split("'")[0]] = Usage(int(registers.group(1)), spills, stack)
    return found


def find_ptxas() -> Path | None:
    for folder in (Path(path or ".") for path in sys.path):
        if (found := folder / "nvidia" / "cuda_nvcc" / "bin" / "ptxas").exists():
            return found
    toolkits = sorted(Path("/usr/local").glob("cuda*/bin/ptxas"), reverse=True)
    on_path = shutil.which("ptxas")
    return Path(on_path) if on_path else next(iter(toolkits), None)


class Ptxas:
    def __init__(self, path: Path, cache: Cache = CACHE) -> None:
        self.path, self.cache = path, cache

    @cached_property
    def version(self) -> str:
        return subprocess.run([self.path, "--version"], capture_output=True, text=True).stdout

    @cached_property
    def architectures(self) -> set[str]:
        said = subprocess.run([self.path, "--help"], capture_output=True, text=True).stdout
        return set(re.findall(r"'(sm_\d+)'", said))

    def compile(self, ptx: str, architecture: str) -> tuple[bytes, str]:
        """A cubin for sm_75 or another; and the log, with each kernel's usage."""
        key = ["ptxas", self.version, architecture, ptx]
        return self.cache.kept(key, lambda: self._compiled(ptx, architecture))

    def _compiled(self, ptx: str, architecture: str) -> tuple[bytes, str]:
        with tempfile.TemporaryDirectory() as name:
            source, image = Path(name) / "kernels.ptx", Path(name) / "kernels.cubin"
            source.write_text(ptx)
            command = [str(self.path), "--verbose", f"--gpu-name={architecture}"]
            command += [str(source), "-o", str(image)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise CompileError(f"{architecture}: {done.stdout}{done.stderr}")
            return image.read_bytes(), done.stderr


@dataclass(frozen=True)
class Compiler:
    """Both, for cubins of a unit."""

    nvrtc: Nvrtc
    ptxas: Ptxas

    @staticmethod
    def find(cache: Cache = CACHE) -> Compiler | None:
        library, ptxas = find_library(), find_ptxas()
        return Compiler(Nvrtc(library, cache), Ptxas(ptxas, cache)) if library and ptxas else None

    def knows(self, architecture: str) -> bool:
        return architecture in self.ptxas.architectures

    def cubin(self, name: str, text: str, architecture: str) -> tuple[bytes, str]:
        """And the log. Of what there is for sm_75 alone, float16.cuh makes more for later ones."""
        ptx_of = LOWEST if architecture == "sm_75" else "compute_80"
        return self.ptxas.compile(self.nvrtc.compile(text, ptx_of, name), architecture)
