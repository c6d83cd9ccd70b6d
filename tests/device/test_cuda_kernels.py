"""The kernels for CUDA devices compile: a sample, by NVRTC where it is installed."""

import sys
import zlib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import cuda_check  # noqa: E402
import nvrtc  # noqa: E402

SAMPLE = "arithmetic_float_add_f32 special_float_erf_f32 complex_complex_conj_physical_c64".split()
PTX = """
.version 8.4
.visible .entry add_f32(
)
{
\tld.global.v4.f32 {%f1, %f2, %f3, %f4}, [%rd1];
\tst.global.v4.f32 [%rd2], {%f1, %f2, %f3, %f4};
}
"""


@pytest.fixture(scope="module")
def compiler() -> nvrtc.Nvrtc:
    path = nvrtc.find_library()
    if path is None:
        pytest.skip("no NVRTC: pip install -r tools/requirements-cuda.txt")
    return nvrtc.Nvrtc(path)


@pytest.mark.parametrize("name", SAMPLE)
def test_kernels_become_ptx_and_cubins(compiler, name):
    unit = next(unit for unit in cuda_check.units() if unit.startswith(name))
    faults = cuda_check.check_unit(compiler, unit, cuda_check.units()[unit], ["sm_90"])
    assert not faults


def test_a_broken_kernel_is_refused_with_its_line(compiler):
    with pytest.raises(nvrtc.CompileError, match=r"broken\.cu\(2\): error"):
        compiler.compile(
            '#include "kernels/cuda/text/kernel.cuh"\nint x = y;\n', "compute_75", "broken.cu"
        )


class Counting(nvrtc.Nvrtc):
    """A compiler that only counts what it is asked for."""

    version = (12, 4)
    headers = {b"a.h": b"one"}

    def __init__(self, cache):
        self.cache, self.compiled = cache, []

    def _compiled(self, text, architecture, name):
        self.compiled.append((text, architecture))
        return b"\x7fELF\0" + text.encode(), f"log of {name}"


def test_a_check_that_was_stopped_goes_on_where_it_was(tmp_path):
    first, second = Counting(tmp_path / "cache"), Counting(tmp_path / "cache")
    given = first.compile("text", "sm_90", "a.cu")
    assert given == (b"\x7fELF\0text", "log of a.cu")
    assert second.compile("text", "sm_90", "a.cu") == given and second.compiled == []
    second.compile("text", "sm_80", "a.cu")
    second.compile("other", "sm_90", "a.cu")
    assert second.compiled == [("text", "sm_80"), ("other", "sm_90")]
    changed = Counting(tmp_path / "cache")
    changed.headers = {b"a.h": b"two"}
    changed.compile("text", "sm_90", "a.cu")
    newer = Counting(tmp_path / "cache")
    newer.version = (12, 8)
    newer.compile("text", "sm_90", "a.cu")
    assert len(changed.compiled) == len(newer.compiled) == 1
    assert not Counting(None).compile("text", "sm_90")[1].endswith("a.cu")


def test_a_check_without_time_looks_at_what_was_compiled(tmp_path):
    compiler = Counting(tmp_path / "cache")
    assert cuda_check.check_unit(compiler, "a.cu", "text", ["sm_90"], until=0) is None
    for architecture in ("compute_75", "sm_90"):
        compiler.compile(PTX, architecture, "a.cu")
    assert not compiler.is_cached(PTX, "sm_80", "a.cu")
    compiler.compiled.clear()
    ptx = zlib.compress(b"log\0" + PTX.encode())
    compiler._cached(PTX, "compute_75", "a.cu").write_bytes(ptx)
    assert cuda_check.check_unit(compiler, "a.cu", PTX, ["sm_90"], until=0) == []
    assert compiler.compiled == []


def test_what_the_check_finds_in_ptx():
    assert not [*cuda_check.ptx_faults(PTX, ["add_f32"])]
    assert "not in the PTX" in next(cuda_check.ptx_faults(PTX, ["mul_f32"]))
    newer = PTX.replace("8.4", "8.5")
    assert "drivers before" in next(cuda_check.ptx_faults(newer, []))
    narrow = PTX.replace("ld.global.v4", "ld.global.v2")
    assert next(cuda_check.ptx_faults(narrow, [])) == "add_f32: loads 8 bytes at a time, not 16"


def test_what_the_check_finds_in_ptxas_report():
    log = """ptxas info    : Compiling entry function 'f_f32' for 'sm_90'
ptxas info    : Function properties for f_f32
    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 300 registers, 528 bytes cmem[0]"""
    assert nvrtc.usages(log) == {"f_f32": nvrtc.Usage(300, 8, 0)}
    assert [*cuda_check.usage_faults(log, "sm_90")] == [
        "f_f32 on sm_90: spills 8 bytes", "f_f32 on sm_90: 300 registers"
    ]  # fmt: skip
