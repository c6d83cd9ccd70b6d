"""The emulator of CUDA kernels under sanitizers: they name who reads beyond an array, and who reads
what another thread of the block writes without a barrier between them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from run_tests import sanitizer_libraries  # noqa: E402

BUILD = Path(taeda._C.__file__).parents[2]
PLANTED = Path(__file__).parent / "emulator" / "races" / "planted.cc"


def run(name: str, *args: str) -> subprocess.CompletedProcess:
    program = BUILD / name
    if not program.exists():
        pytest.skip(f"{name} was not built (ninja {name})")
    env = dict(os.environ, TSAN_OPTIONS="history_size=7")  # where the earlier access was
    return subprocess.run([program, *args], capture_output=True, text=True, env=env)


def test_a_kernel_within_its_arrays_is_silent():
    done = run("taeda_emulator_overrun", "exact")
    assert (done.returncode, done.stderr) == (0, "")


def test_one_element_too_many_is_named():
    done = run("taeda_emulator_overrun")
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr
    assert "pointwise.cuh" in done.stderr


def test_kernels_with_their_barriers_have_no_races():
    done = run("taeda_emulator_races")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == "500 0.001 499.5 6.90776 1000 50 25 2400 102 611".split()


def marked_lines(kernel: str) -> set[int]:
    lines = PLANTED.read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if line.endswith(f"// race: {kernel}")}


def accesses(report: str) -> list[str]:
    """What is said of each access of a report: its innermost function and line."""
    return re.findall(r"(?:Read|Write|read|write) of size \d+ at .*\n +(.+)", report)


PLANTED_RACES = "no_barrier no_second_barrier no_warp_barrier no_atomic".split()


@pytest.mark.parametrize("kernel", PLANTED_RACES)
def test_threads_that_nothing_orders_are_named_and_nobody_else(kernel):
    done = run("taeda_emulator_races", kernel)
    assert done.returncode != 0
    reports = done.stderr.split("WARNING: ThreadSanitizer: ")[1:]
    assert reports and all(report.startswith("data race") for report in reports), done.stderr
    named = set()
    for report in reports:
        for access in accesses(report):
            place = re.search(rf"#0 {kernel}<false> \S*races/planted\.cc:(\d+)", access)
            assert place, report
            named.add(int(place[1]))
    assert named == marked_lines(kernel), done.stderr


@pytest.mark.parametrize("kernel", PLANTED_RACES)
def test_the_same_kernels_are_silent_with_what_orders_them(kernel):
    done = run("taeda_emulator_races", kernel, "ordered")
    assert (done.returncode, done.stderr) == (0, "")


# By kernels of cmake/emulator.cmake's taeda_emulator_tsan.
TOGETHER = "sum softmax layer_norm cumsum logcumsumexp sort topk mode nonzero _fft_c2c max_pool2d"
SUPPRESSIONS = ROOT / "tools" / "tsan_kernels.supp"


def test_operators_whose_threads_work_together_have_no_races(tmp_path):
    """Their samples, in a Python that has loaded the thread sanitizer (make cuda-tsan)."""
    if not (BUILD / "lib" / "libtaeda_emulator_tsan.so").exists():
        pytest.skip("libtaeda_emulator_tsan.so was not built (ninja taeda_emulator_tsan)")
    out = tmp_path / "rows.jsonl"
    env = dict(os.environ, TAEDA_CUDA="sim", TAEDA_EMULATOR="libtaeda_emulator_tsan.so")
    env |= {"LD_PRELOAD": sanitizer_libraries("thread")}
    options = "history_size=7:detect_deadlocks=0:print_suppressions=0"
    env |= {"TSAN_OPTIONS": f"{options}:suppressions={SUPPRESSIONS}"}
    only = f"^({TOGETHER.replace(' ', '|')})$"
    command = [sys.executable, "-W", "ignore", "-m", "tests.gpu.part", "parity", "--simulated"]
    done = subprocess.run(
        [*command, "--only", only, "--out", out], cwd=ROOT, env=env, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    kernels = rows.pop()["kernels"]
    wrong = [row for row in rows if row["outcome"] != "passed"]
    assert not wrong and len(rows) > len(TOGETHER.split()) and len(kernels) > 20


def test_an_emulator_of_other_kernels_is_refused(tmp_path):
    """Its stamp is another: it was built before the text of kernels changed."""
    folder = Path(taeda.__file__).parents[2] / "lib"
    library = folder / "libtaeda_emulator.so"
    if not library.exists():
        pytest.skip("the emulator was not built (ninja taeda_emulator)")
    image = library.read_bytes()
    (stamp,) = set(re.findall(rb"\0([0-9a-f]{64})\0", image))
    (tmp_path / library.name).write_bytes(image.replace(stamp, stamp[::-1]))
    program = "import taeda; taeda.ones(3, device='cuda').sum().item()"
    env = dict(os.environ, TAEDA_CUDA="sim")
    for name in (os.path.relpath(tmp_path / library.name, folder), "libtaeda_emulator.so"):
        env["TAEDA_EMULATOR"] = name
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, env=env
        )
        if name == library.name:
            assert done.returncode == 0, done.stderr
            continue
        assert "was built from other text of the kernels than this driver" in done.stderr
        assert "ninja taeda_emulator)" in done.stderr
