"""NVRTC, which makes PTX of kernels for CUDA devices, through ctypes: no card, driver or toolkit.

It comes from PyPI (tools/requirements-cuda.txt); version 12.4 writes PTX 8.4, which drivers since
550 accept. Kernels include the project's own headers and text only; what they ask for of the
standard library is src/kernels/cuda/text/std.cuh. tools/ptxas.py makes cubins of the PTX.
"""

from __future__ import annotations

import ctypes
import hashlib
import multiprocessing
import os
import re
import sys
import zlib
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
STANDARD = (
    "algorithm bit cmath complex cstddef cstdint cstring initializer_list limits numbers numeric "
    "optional type_traits utility"
).split()
# Headers of the host that kernels' headers include, and what stands for them on a device.
REPLACED = {
    "taeda/error.h": "",  # TD_CHECK is that of fault.cuh
    "taeda/dtype.h": """#include "kernels/cuda/text/std.cuh"
namespace taeda { enum class DType : uint8_t; }
""",
}
INCLUDE = re.compile(r'^\s*#\s*include ["<]([^">]+)[">]', re.MULTILINE)
OPTIONS = ["--std=c++20", "-default-device", "--fmad=true", "--diag-suppress=1097,177,550"]

LOWEST = "compute_75"  # the architecture whose PTX taeda_kernels.bin has


class CompileError(Exception):
    """What a compiler says of a unit that does not compile."""


class Cache:
    """What was compiled, by all that decides it: a run that is stopped goes on where it was."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def kept(self, key: list[str], make: Callable[[], tuple[bytes, str]]) -> tuple[bytes, str]:
        """The image and the log that `make` gives, or gave once."""
        if self.folder is None:
            return make()
        text = "".join(f"{len(part)}:{part}" for part in key)
        path = self.folder / hashlib.sha256(text.encode()).hexdigest()
        if path.exists():
            log, image = zlib.decompress(path.read_bytes()).split(b"\0", 1)
            return image, log.decode()
        image, said = make()
        self.folder.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_bytes(zlib.compress(said.encode() + b"\0" + image, 1))
        fresh.rename(path)
        return image, said


CACHE = Cache(ROOT / ".cache" / "nvrtc")


def find_library() -> Path | None:
    for folder in (Path(path or ".") for path in sys.path):
        for found in sorted(folder.glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.1[2-9]")):
            return found
    return None


def processes(jobs: int) -> ProcessPoolExecutor:
    """Several compilers at a time: within one process NVRTC takes a unit after the other."""
    return ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"))


@cache
def all_headers() -> dict[str, str]:
    """What units may include: kernels' text, functors, and whatever those include."""
    texts = {name: '#include "kernels/cuda/text/std.cuh"\n' for name in STANDARD} | REPLACED
    todo = [
        str(file.relative_to(SRC))
        for pattern in ("kernels/cuda/text/*", "kernels/pointwise/*.h")
        for file in SRC.glob(pattern)
    ]
    while todo:
        name = todo.pop()
        if name not in texts and (SRC / name).exists():  # the emulator's is another folder's
            texts[name] = (SRC / name).read_text()
            todo += INCLUDE.findall(texts[name])
    return dict(sorted(texts.items()))


def headers_of(text: str, headers: dict[str, str]) -> dict[str, str]:
    """Those that a unit includes, and what they include."""
    found, todo = set[str](), INCLUDE.findall(text)
    while todo:
        if (name := todo.pop()) in headers and name not in found:
            found.add(name)
            todo += INCLUDE.findall(headers[name])
    return {name: headers[name] for name in sorted(found)}


class Nvrtc:
    def __init__(self, path: Path, cache: Cache = CACHE) -> None:
        self.path, self.cache = path, cache

    def __getstate__(self) -> dict[str, object]:  # another process opens the library itself
        return {"path": self.path, "cache": self.cache}

    @cached_property
    def library(self) -> ctypes.CDLL:
        return ctypes.CDLL(str(self.path))

    @cached_property
    def version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return major.value, minor.value

    def _check(self, status: int) -> None:
        if status:
            self.library.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise CompileError(self.library.nvrtcGetErrorString(status).decode())

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self.library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        buffer = ctypes.create_string_buffer(size.value)
        self._check(getattr(self.library, f"nvrtcGet{what}")(program, buffer))
        return buffer.raw

    def compile(self, text: str, architecture: str, name: str = "kernels.cu") -> str:
        """PTX of a unit, for compute_75 or another."""
        headers = headers_of(text, all_headers())
        key = ["NVRTC", str(self.version), *OPTIONS, architecture, name, text]
        key += [part for header in headers.items() for part in header]
        ptx, _ = self.cache.kept(key, lambda: self._compiled(text, headers, architecture, name))
        return ptx.decode()

    def _compiled(
        self, text: str, headers: dict[str, str], architecture: str, name: str
    ) -> tuple[bytes, str]:
        program = ctypes.c_void_p()
        count = len(headers)
        texts = (ctypes.c_char_p * count)(*(text.encode() for text in headers.values()))
        names = (ctypes.c_char_p * count)(*(name.encode() for name in headers))
        create = self.library.nvrtcCreateProgram
        source = text.encode(), name.encode()
        self._check(create(ctypes.byref(program), *source, count, texts, names))
        try:
            options = [f"--gpu-architecture={architecture}", *OPTIONS]
            args = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
            status = self.library.nvrtcCompileProgram(program, len(options), args)
            log = self._text(program, "ProgramLog").rstrip(b"\0").decode()
            if status:
                raise CompileError(f"{name} for {architecture}:\n{log}")
            return self._text(program, "PTX").rstrip(b"\0"), log
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))
