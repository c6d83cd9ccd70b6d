"""NVRTC, the compiler of kernels for CUDA devices, through ctypes: no card, driver or toolkit.

It comes from PyPI (tools/requirements-cuda.txt); version 12.4 writes PTX 8.4, which drivers since
550 accept. Kernels include the project's own headers and text only; what they ask for of the
standard library is src/kernels/cuda/text/std.cuh.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import re
import sys
import zlib
from dataclasses import dataclass
from functools import cached_property
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
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
OPTIONS = ["--std=c++20", "-default-device", "--fmad=true", "--diag-suppress=1097,177,550"]


# What was compiled, by all that decides it: a run that is stopped goes on where it was.
CACHE = ROOT / ".cache" / "nvrtc"


class CompileError(Exception):
    """What NVRTC says of a unit that does not compile."""


@dataclass(frozen=True)
class Usage:
    """What a kernel takes of an architecture, by ptxas."""

    registers: int
    spill_bytes: int
    stack_bytes: int


def find_library() -> Path | None:
    for folder in (Path(path or ".") for path in sys.path):
        for found in sorted(folder.glob("nvidia/cuda_nvrtc/lib/libnvrtc.so.1[2-9]")):
            return found
    return None


def headers() -> dict[str, str]:
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


class Nvrtc:
    def __init__(self, path: Path, cache: Path | None = None) -> None:
        self.library = ctypes.CDLL(str(path))
        self.cache = cache

    @cached_property
    def version(self) -> tuple[int, int]:
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._check(self.library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
        return major.value, minor.value

    @cached_property
    def architectures(self) -> set[str]:
        """What it makes cubins for."""
        count = ctypes.c_int()
        self._check(self.library.nvrtcGetNumSupportedArchs(ctypes.byref(count)))
        found = (ctypes.c_int * count.value)()
        self._check(self.library.nvrtcGetSupportedArchs(found))
        return {f"sm_{number}" for number in found}

    @cached_property
    def headers(self) -> dict[bytes, bytes]:
        return {name.encode(): text.encode() for name, text in headers().items()}

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

    @cached_property
    def _headers_digest(self) -> str:
        said = {name.decode(): text.decode() for name, text in self.headers.items()}
        return hashlib.sha256(json.dumps([said, OPTIONS, self.version]).encode()).hexdigest()

    def _cached(self, text: str, architecture: str, name: str) -> Path | None:
        key = hashlib.sha256("\0".join([self._headers_digest, architecture, name, text]).encode())
        return self.cache / key.hexdigest() if self.cache else None

    def is_cached(self, text: str, architecture: str, name: str) -> bool:
        path = self._cached(text, architecture, name)
        return path is not None and path.exists()

    def compile(self, text: str, architecture: str, name: str = "kernels.cu") -> tuple[bytes, str]:
        """PTX for compute_75, a cubin for sm_75; and the log, with each kernel's usage."""
        path = self._cached(text, architecture, name)
        if path is None:
            return self._compiled(text, architecture, name)
        if path.exists():
            said, image = zlib.decompress(path.read_bytes()).split(b"\0", 1)
            return image, said.decode()
        image, log = self._compiled(text, architecture, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_bytes(zlib.compress(log.encode() + b"\0" + image, 1))
        fresh.rename(path)
        return image, log

    def _compiled(self, text: str, architecture: str, name: str) -> tuple[bytes, str]:
        program = ctypes.c_void_p()
        count = len(self.headers)
        texts = (ctypes.c_char_p * count)(*self.headers.values())
        names = (ctypes.c_char_p * count)(*self.headers)
        create = self.library.nvrtcCreateProgram
        source = text.encode(), name.encode()
        self._check(create(ctypes.byref(program), *source, count, texts, names))
        try:
            binary = architecture.startswith("sm_")
            options = [f"--gpu-architecture={architecture}", *OPTIONS]
            options += ["--ptxas-options=--verbose"] if binary else []
            args = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
            status = self.library.nvrtcCompileProgram(program, len(options), args)
            log = self._text(program, "ProgramLog").rstrip(b"\0").decode()
            if status:
                raise CompileError(f"{name} for {architecture}:\n{log}")
            return self._text(program, "CUBIN" if binary else "PTX"), log
        finally:
            self.library.nvrtcDestroyProgram(ctypes.byref(program))


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
