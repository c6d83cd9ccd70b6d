"""The kernels for CUDA devices compile, by NVRTC and ptxas where they are installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import cuda_check  # noqa: E402
import nvrtc  # noqa: E402
import ptxas  # noqa: E402

UNITS = cuda_check.units()
SAMPLE = "arithmetic_float_add_f32 special_float_erf_f32 complex_complex_".split()
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


@pytest.fixture(scope="module")
def faults(compiler):
    """What the check finds in the PTX of each unit, which is what taeda_kernels.bin packs."""
    with nvrtc.processes(len(os.sched_getaffinity(0))) as pool:
        yield {
            name: pool.submit(cuda_check.check_ptx, compiler, name, text)
            for name, text in UNITS.items()
        }
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("unit", UNITS)
def test_kernels_become_ptx(faults, unit):
    assert not faults[unit].result()


def test_the_notes_say_how_many_there_are():
    kernels = [kernel for text in UNITS.values() for kernel in cuda_check.kernels_of(text)]
    lists = sum(kernel.endswith("_list") for kernel in kernels)
    said = f"{len(kernels) - lists:,} of single calls and {lists} of lists"
    assert said in (ROOT / "docs" / "notes" / "cuda-kernels.md").read_text(encoding="utf-8")


def test_the_emulator_has_the_kernels_that_are_found_in_units():
    if not hasattr(taeda._C, "_cuda_kernel_names"):
        pytest.skip("operators have no kernels for CUDA here")
    program = "import taeda; taeda.cuda.init(); print(*taeda._C._cuda_kernel_names())"
    env = dict(os.environ, TAEDA_CUDA="sim")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    found = [kernel for text in UNITS.values() for kernel in cuda_check.kernels_of(text)]
    if not done.stdout.split():
        pytest.skip("the emulator was not built (ninja taeda_emulator)")
    assert sorted(done.stdout.split()) == sorted(found)


def test_the_budget_of_registers_is_of_kernels_that_there_are():
    limit, named = cuda_check.register_budget()
    kernels = {kernel for text in UNITS.values() for kernel in cuda_check.kernels_of(text)}
    assert set(named) <= kernels
    assert limit == 64 and all(limit < registers <= 128 for registers in named.values())


MACROS = """#include "kernels/cuda/text/move.cuh"
#define TD_BOTH(type, T)                         \\
  TD_GLOBAL(first_##type##_any, Args, f<T, true>) \\
  TD_GLOBAL(second_##type##_any, Args, g<T>)
#define TD_LEAST(x, y) ((x) < (y) ? (x) : (y))
TD_BOTH(f32, float)
TD_BOTH(f64, double)
TD_GLOBAL(third_i64_any, Args, h<TD_LEAST(1, 2)>)
TD_BY_SIZE(moved, Args, move_kernel)
"""


def test_kernels_are_found_that_macros_name():
    found = cuda_check.kernels_of(MACROS)
    assert found[:5] == [
        "first_f32_any", "second_f32_any", "first_f64_any", "second_f64_any", "third_i64_any"
    ]  # fmt: skip
    assert found[5:] == [f"moved_{kind}_any" for kind in ("u8", "i16", "i32", "i64", "c128")]


@pytest.mark.parametrize("name", SAMPLE)
def test_kernels_become_cubins(name):
    compiler = ptxas.Compiler.find()
    if compiler is None or not compiler.knows("sm_120"):
        pytest.skip(ptxas.MISSING)
    unit = next(unit for unit in UNITS if unit.startswith(name))
    assert not cuda_check.check_unit(compiler, unit, UNITS[unit], ["sm_90", "sm_120"])


def test_a_broken_kernel_is_refused_with_its_line(compiler):
    text = '#include "kernels/cuda/text/kernel.cuh"\nint x = y;\n'
    with pytest.raises(nvrtc.CompileError, match=r"broken\.cu\(2\): error"):
        compiler.compile(text, "compute_75", "broken.cu")
    (fault,) = cuda_check.check_ptx(compiler, "broken.cu", text)
    assert "broken.cu(2): error" in fault


class Counting(nvrtc.Nvrtc):
    """A compiler that only counts what it is asked for."""

    version = (12, 4)

    def __init__(self, folder):
        self.cache, self.compiled = nvrtc.Cache(folder), []

    def _compiled(self, text, headers, architecture, name):
        self.compiled.append((text, architecture))
        return f"PTX of {text}".encode(), f"log of {name}"


def test_a_check_that_was_stopped_goes_on_where_it_was(tmp_path):
    first, second = Counting(tmp_path / "cache"), Counting(tmp_path / "cache")
    assert first.compile("text", "compute_75", "a.cu") == "PTX of text"
    assert second.compile("text", "compute_75", "a.cu") == "PTX of text"
    assert second.compiled == []
    second.compile("text", "compute_80", "a.cu")
    second.compile("other", "compute_75", "a.cu")
    assert second.compiled == [("text", "compute_80"), ("other", "compute_75")]
    newer = Counting(tmp_path / "cache")
    newer.version = (12, 8)
    newer.compile("text", "compute_75", "a.cu")
    assert len(newer.compiled) == 1
    without = Counting(None)
    for _ in range(2):
        without.compile("text", "compute_75", "a.cu")
    assert len(without.compiled) == 2


def test_only_units_that_include_a_changed_header_are_compiled_anew(tmp_path, monkeypatch):
    headers = {"a.h": '#include "b.h"', "b.h": "one", "c.h": "one"}
    monkeypatch.setattr(nvrtc, "all_headers", lambda: headers)
    compiler, units = Counting(tmp_path / "cache"), ['#include "a.h"', "#include <c.h>"]
    for changed, anew in (("", units), ("b.h", units[:1]), ("c.h", units[1:])):
        headers |= {changed: "two"} if changed else {}
        compiler.compiled.clear()
        for unit in units:
            compiler.compile(unit, "compute_75", "a.cu")
        assert [text for text, _ in compiler.compiled] == anew


def test_what_the_check_finds_in_ptx():
    assert not [*cuda_check.ptx_faults(PTX, ["add_f32"])]
    assert [*cuda_check.ptx_faults(PTX, ["mul_f32"])] == [
        "mul_f32: not in the PTX", "add_f32: not found in its unit"
    ]  # fmt: skip
    newer = PTX.replace("8.4", "8.5")
    assert "drivers before" in next(cuda_check.ptx_faults(newer, ["add_f32"]))
    narrow = PTX.replace("ld.global.v4", "ld.global.v2")
    assert (
        next(cuda_check.ptx_faults(narrow, ["add_f32"]))
        == "add_f32: loads 8 bytes at a time, not 16"
    )


def test_what_the_check_finds_in_ptxas_report():
    log = """ptxas info    : Compiling entry function 'f_f32' for 'sm_90'
ptxas info    : Function properties for f_f32
    0 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 300 registers, 528 bytes cmem[0]"""
    assert ptxas.usages(log) == {"f_f32": ptxas.Usage(300, 8, 0)}
    assert [*cuda_check.usage_faults(log, "sm_90")] == [
        "f_f32 on sm_90: spills 8 bytes", "f_f32 on sm_90: 300 registers"
    ]  # fmt: skip
