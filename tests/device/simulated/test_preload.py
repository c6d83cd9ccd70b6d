"""torch.cuda.preload(): kernels that are loaded before an operator asks for them."""

import pytest

import taeda


def test_patterns_choose_kernels():
    assert taeda.cuda.preload("add_f32") == 1
    assert taeda.cuda.preload("reduce_sum_*", "add_f16") == 6
    assert taeda.cuda.preload("nothing_f32") == 0


def test_every_device_has_its_own():
    assert taeda.cuda.preload("mul_*", device="cuda:1") == taeda.cuda.preload("mul_*") > 10
    x = taeda.ones(3, device="cuda:1")
    assert (x * x).tolist() == [1, 1, 1]


def test_all_of_them():
    assert taeda.cuda.preload() > 2000


def test_a_device_that_does_not_exist():
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        taeda.cuda.preload("add_f32", device=7)
