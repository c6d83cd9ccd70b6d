"""What the processor can do, as Linux says it in /proc/cpuinfo and /sys/devices/system/cpu."""

from __future__ import annotations

import functools
import platform
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# PyTorch's name of an instruction set, and Linux's where that is another.
_X86 = """
    sse sse2 sse3=pni ssse3 sse4_1 sse4_2 sse4a avx avx2 avx_vnni fma3=fma fma4 f16c
    avx512_f=avx512f avx512_cd=avx512cd avx512_dq=avx512dq avx512_bw=avx512bw avx512_vl=avx512vl
    avx512_ifma=avx512ifma avx512_vbmi=avx512vbmi avx512_vbmi2 avx512_bitalg avx512_vpopcntdq
    avx512_vnni avx512_bf16 avx512_fp16 avx512_vp2intersect avx512_4vnniw avx512_4fmaps
    avx10_1 avx10_2 avx_vnni_int8 avx_vnni_int16 avx_ne_convert
    amx_bf16 amx_tile amx_int8 amx_fp16 bmi=bmi1 bmi2 popcnt lzcnt=abm aes sha=sha_ni
    clflush clflushopt clwb
"""
_ARM = """
    neon=asimd fp16_arith=asimdhp bf16 i8mm dot=asimddp sve sve2 sve_bf16=svebf16 sme sme2
    atomics fhm=asimdfhm rdm=asimdrdm crc32 aes sha1 sha2 pmull
"""


def _fields(text: str) -> list[dict[str, str]]:
    """The processors of /proc/cpuinfo, each as its fields."""
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    return [
        {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in block)}
        for block in blocks
    ]


def _cache_sizes(folder: Path) -> dict[str, int]:
    """Bytes of the first core's data caches of levels 1 and 2."""
    sizes = {}
    for index in sorted(folder.glob("index*")):
        level, kind, size = (
            (index / name).read_text().strip() for name in ("level", "type", "size")
        )
        name = {("1", "Data"): "l1d_cache_size", ("2", "Unified"): "l2_cache_size"}.get(
            (level, kind)
        )
        if name and size.endswith("K"):
            sizes[name] = int(size[:-1]) * 1024
    return sizes


def read(text: str, architecture: str, caches: Path) -> dict[str, Any]:
    """The capabilities that a text of /proc/cpuinfo tells of."""
    cores = _fields(text)
    flags = set(cores[0].get("flags", cores[0].get("Features", "")).split())
    words = _X86 if architecture == "x86_64" else _ARM if architecture == "aarch64" else ""
    names = (word.partition("=") for word in words.split())
    found: dict[str, Any] = {name: (other or name) in flags for name, _, other in names}
    sockets = {core.get("physical id", "0") for core in cores}
    physical = {
        (core.get("physical id"), core.get("core id", core.get("processor"))) for core in cores
    }
    return found | {
        "architecture": "arm64" if architecture == "aarch64" else architecture,
        "cpu_name": cores[0].get("model name", "unknown"),
        "num_sockets": len(sockets),
        "num_physical_cores": len(physical),
        "num_logical_cores": len(cores),
        **_cache_sizes(caches),
    }  # fmt: skip


@functools.cache
def get_capabilities() -> Mapping[str, Any]:
    """The processor's instruction sets, each with whether it is there, its cores and caches.

    >>> taeda.cpu.get_capabilities()["num_logical_cores"] > 0
    True
    """
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        text = ""
    caches = Path("/sys/devices/system/cpu/cpu0/cache")
    return types.MappingProxyType(read(text, platform.machine(), caches))
