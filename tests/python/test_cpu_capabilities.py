"""torch.cpu.get_capabilities, by texts of /proc/cpuinfo and beside PyTorch's cpuinfo."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

import taeda
from taeda.cpu import _capabilities

X86 = """processor\t: 0
physical id\t: 0
core id\t\t: 0
model name\t: Some Processor @ 2.00GHz
flags\t\t: fpu sse sse2 pni fma avx2 avx512f abm sha_ni

processor\t: 1
physical id\t: 0
core id\t\t: 0
flags\t\t: fpu sse sse2 pni fma avx2 avx512f abm sha_ni
"""
ARM = """processor\t: 0
Features\t: fp asimd aes atomics asimddp sve
"""


def caches(folder: Path) -> Path:
    for index, (level, kind, size) in enumerate(
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K")]
    ):
        (one := folder / f"index{index}").mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (one / name).write_text(f"{text}\n")
    return folder


def test_sets_of_an_x86_processor_have_pytorchs_names(tmp_path):
    found = _capabilities.read(X86, "x86_64", caches(tmp_path / "cache"))
    there = {name for name, value in found.items() if value is True}
    assert there == {"sse", "sse2", "sse3", "fma3", "avx2", "avx512_f", "lzcnt", "sha"}
    assert found["avx512_bw"] is False and "neon" not in found
    assert (found["num_sockets"], found["num_physical_cores"], found["num_logical_cores"]) == (
        1,
        1,
        2,
    )
    assert (found["l1d_cache_size"], found["l2_cache_size"]) == (48 * 1024, 2048 * 1024)
    assert found["cpu_name"] == "Some Processor @ 2.00GHz"


def test_sets_of_an_arm_processor_have_pytorchs_names(tmp_path):
    found = _capabilities.read(ARM, "aarch64", tmp_path)
    there = {name for name, value in found.items() if value is True}
    assert there == {"neon", "aes", "atomics", "dot", "sve"}
    assert found["architecture"] == "arm64" and found["num_logical_cores"] == 1


def test_a_machine_that_says_nothing_has_nothing(tmp_path):
    found = _capabilities.read("", "riscv64", tmp_path)
    assert found["architecture"] == "riscv64" and found["num_logical_cores"] == 1


def test_this_machines_sets_are_those_that_pytorch_finds():
    torch = pytest.importorskip("torch")
    if not hasattr(torch.cpu, "get_capabilities") or platform.machine() != "x86_64":
        pytest.skip("PyTorch says nothing of this processor")
    ours, theirs = taeda.cpu.get_capabilities(), torch.cpu.get_capabilities()
    assert set(theirs) - set(ours) <= {"l1d_cache_size", "l2_cache_size"}
    virtual = {"cpu_name", "num_sockets", "num_physical_cores", "l1d_cache_size", "l2_cache_size"}
    assert {k: ours[k] for k in set(theirs) - virtual} == {
        k: theirs[k] for k in set(theirs) - virtual
    }
    with pytest.raises(TypeError):
        ours["avx2"] = True
