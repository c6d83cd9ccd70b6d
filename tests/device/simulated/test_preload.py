"""torch.cuda.preload(): kernels that are loaded before an operator asks for them."""

import subprocess
import sys

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


FIRST_IN_A_CAPTURE = """
import taeda as torch
x = torch.ones(4, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = torch.erfinv(x * 0.5) + torch.rand(4, device="cuda")
for _ in range(2):
    graph.replay()
    print(y.shape, bool((y > 0.4).all()))
"""


def test_a_kernel_may_be_loaded_first_while_a_graph_is_captured():
    done = subprocess.run(
        [sys.executable, "-c", FIRST_IN_A_CAPTURE], capture_output=True, text=True
    )
    assert (done.stdout, done.stderr) == ("torch.Size([4]) True\n" * 2, "")
