"""The emulator of CUDA kernels under sanitizers: they name who reads beyond an array, and who reads
what another thread of the block writes without a barrier between them."""

import subprocess
from pathlib import Path

import pytest

import taeda

BUILD = Path(taeda._C.__file__).parents[2]


def run(name: str, *args: str) -> subprocess.CompletedProcess:
    program = BUILD / name
    if not program.exists():
        pytest.skip(f"{name} was not built (ninja {name})")
    return subprocess.run([program, *args], capture_output=True, text=True)


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


def test_a_missing_barrier_is_named():
    done = run("taeda_emulator_races", "broken")
    assert done.returncode != 0
    assert "data race" in done.stderr
    assert "races/main.cc" in done.stderr
