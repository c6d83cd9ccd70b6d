"""Cases on a part of their data: the same work, so many times smaller."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import taeda

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import cases
from part import Part


def test_only_large_tensors_are_cut() -> None:
    part = Part(taeda)
    assert part.randn(2048, 2048).shape == (128, 2048) and part.times == 16
    assert part.randint(0, 9, (8192,)).shape == (512,)
    assert part.rand(1000, 1000, dtype=taeda.float64).shape == (62, 1000)
    assert part.times == pytest.approx(1000 / 62)
    small = Part(taeda)
    assert small.randn(64).shape == (64,) and small.ones(2048).shape == (2048,)
    assert small.times == 1


def test_a_case_runs_on_its_part() -> None:
    run, times = cases.make("part", "exp", "taeda")
    assert run().shape == (128, 2048) and times == 16
    whole, once = cases.make("kernels", "exp", "taeda")
    assert whole().shape == (2048, 2048) and once == 1
    run, times = cases.make("part", "batch_norm, training, forward and backward", "taeda")
    assert run()[0].shape == (1, 64, 56, 56) and times == 16


def test_tensors_that_no_longer_fit_raise() -> None:
    run, _ = cases.make("part", "x + y.t()", "taeda")
    with pytest.raises(RuntimeError, match="must match"):
        run()
