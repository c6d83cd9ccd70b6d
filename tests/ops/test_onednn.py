"""Products and convolutions by oneDNN: over sizes, layouts and instruction sets none is left to its
reference implementation, and the values are NumPy's."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda as torch
from taeda import _C

RANDOM = np.random.default_rng(3)
LIMIT = "ONEDNN_MAX_CPU_ISA"


def small_integers(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Exact in bf16, and so are sums of a few thousand products of them in f32."""
    return torch.from_numpy(RANDOM.integers(-3, 4, shape).astype(np.float32)).to(dtype)


def wide(x: torch.Tensor) -> np.ndarray:
    return x.detach().double().numpy()


def check(got: torch.Tensor, want: np.ndarray) -> None:
    """Integers below 256 are exact in bf16; larger ones are rounded to 8 bits."""
    error = 2.0**-8 if got.dtype == torch.bfloat16 else 2.0**-20
    np.testing.assert_allclose(wide(got), want, rtol=error, atol=0)


@pytest.fixture(autouse=True)
def no_reference() -> None:
    yield
    assert not [name for name in _C._implementations() if " ref" in name]


# How a matrix lies: the columns of a larger one, every layout that a view may have.
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.t().contiguous().t(),
    "part of rows": lambda x: torch.cat([x, x], 1)[:, : x.shape[1]],
    "part of columns": lambda x: torch.cat([x, x], 0).t().contiguous().t()[: x.shape[0]],
    "every second": lambda x: torch.stack([x, x], 2)[:, :, 0],
}
SIZES = [(1030, 130, 70), (300, 1030, 64), (64, 64, 64)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_products(size: tuple[int, int, int], dtype: torch.dtype) -> None:
    m, n, k = size
    a, b = small_integers(dtype, m, k), small_integers(dtype, k, n)
    want, bias = wide(a) @ wide(b), small_integers(dtype, n)
    for first, second in itertools.product(LAYOUTS.values(), repeat=2):
        x, y = first(a), second(b)
        check(x @ y, want)
        check(torch.addmm(bias, x, y), want + wide(bias))
        check((y.t() @ x.t()).t(), want)
    out = torch.zeros(m, n + 8, dtype=dtype)
    torch.addmm(out[:, :n], a, b, alpha=2, out=out[:, :n])
    check(out[:, :n], 2 * want)


@pytest.mark.parametrize("width", [1000, 1024, 1025, 4096])
def test_linear_layers_gradients_in_bf16(width: int) -> None:
    # The gradient of the weight is a product whose first factor lies column by column.
    x = small_integers(torch.bfloat16, 96, 64).requires_grad_()
    w = small_integers(torch.bfloat16, width, 64).requires_grad_()
    gy = small_integers(torch.bfloat16, 96, width)
    torch.nn.functional.linear(x, w).backward(gy)
    check(w.grad, wide(gy).T @ wide(x))
    check(x.grad, wide(gy) @ wide(w))


def test_batches_of_products() -> None:
    a, b = small_integers(torch.bfloat16, 6, 130, 70), small_integers(torch.bfloat16, 6, 70, 90)
    want = wide(a) @ wide(b)
    for x in (a, a.transpose(1, 2).contiguous().transpose(1, 2), a.repeat(1, 1, 2)[:, :, :70]):
        for y in (b, b.transpose(1, 2).contiguous().transpose(1, 2), b.repeat(1, 2, 1)[:, :70]):
            check(torch.bmm(x, y), want)


def windows(x: np.ndarray, kernel: int, stride: int, dilation: int) -> np.ndarray:
    """(n, c, h, w, kernel, kernel): a view of the padded images."""
    reach = (kernel - 1) * dilation + 1
    view = np.lib.stride_tricks.sliding_window_view(x, (reach, reach), (2, 3))
    return view[:, :, ::stride, ::stride, ::dilation, ::dilation]


def convolve(x, w, gy, stride: int, padding: int, dilation: int, groups: int):
    """The convolution of one group after the other, and its gradients with respect to x and w."""
    around = ((0, 0), (0, 0), (padding, padding), (padding, padding))
    padded = np.pad(x, around)
    y, gx, gw = [], np.zeros_like(padded), []
    pairs = zip(np.split(padded, groups, 1), np.split(gx, groups, 1), strict=True)
    for (part, grad), f, g in zip(pairs, np.split(w, groups), np.split(gy, groups, 1), strict=True):
        seen = windows(part, w.shape[2], stride, dilation)
        y.append(np.einsum("nchwij,ocij->nohw", seen, f))
        gw.append(np.einsum("nchwij,nohw->ocij", seen, g))
        each = np.einsum("nohw,ocij->nchwij", g, f)
        for h, v in itertools.product(range(g.shape[2]), range(g.shape[3])):
            rows = slice(h * stride, h * stride + (w.shape[2] - 1) * dilation + 1, dilation)
            columns = slice(v * stride, v * stride + (w.shape[3] - 1) * dilation + 1, dilation)
            grad[:, :, rows, columns] += each[:, :, h, v]
    inner = slice(padding, padding + x.shape[2]), slice(padding, padding + x.shape[3])
    return np.concatenate(y, 1), gx[:, :, inner[0], inner[1]], np.concatenate(gw)


GEOMETRIES = [(1, 1, 0, 1), (3, 1, 1, 1), (3, 2, 1, 1), (3, 1, 2, 2), (5, 3, 0, 1), (3, 1, 4, 1)]
CHANNELS = [(3, 8, 1), (17, 33, 1), (16, 32, 4), (12, 12, 12), (64, 64, 2), (6, 9, 3)]


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("channels", CHANNELS, ids=str)
def test_convolutions(
    channels: tuple[int, int, int], dtype: torch.dtype, channels_last: bool
) -> None:
    c, o, groups = channels
    for kernel, stride, padding, dilation in GEOMETRIES:
        x = small_integers(dtype, 3, c, 11, 11)
        if channels_last:
            x = x.to(memory_format=torch.channels_last)
        x.requires_grad_()
        w = small_integers(dtype, o, c // groups, kernel, kernel).requires_grad_()
        b = small_integers(dtype, o).requires_grad_()
        y = torch.nn.functional.conv2d(x, w, b, stride, padding, dilation, groups)
        gy = small_integers(dtype, *y.shape)
        y.backward(gy)
        wanted = convolve(wide(x), wide(w), wide(gy), stride, padding, dilation, groups)
        check(y, wanted[0] + wide(b)[:, None, None])
        check(x.grad, wanted[1])
        check(w.grad, wanted[2])
        check(b.grad, wide(gy).sum((0, 2, 3)))


def test_the_choices_are_counted() -> None:
    x, w = torch.randn(2, 16, 9, 9), torch.randn(16, 16, 5, 5)
    torch.nn.functional.conv2d(x, w)
    counts = _C._implementations()
    assert any(name.startswith("convolution ") and n > 0 for name, n in counts.items())


@pytest.mark.skipif(LIMIT in os.environ or "TAEDA_CPU" in os.environ, reason="runs itself")
@pytest.mark.parametrize("isa", ["SSE41", "AVX2", "AVX512_CORE", "baseline"])
def test_smaller_instruction_sets(isa: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    command += ["-k", "convolutions or linear"]
    limit = {"TAEDA_CPU": isa} if isa == "baseline" else {LIMIT: isa}
    done = subprocess.run(
        command, env=os.environ | limit, cwd=Path(__file__).parents[2], capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2000:]


SIGNALS = """
import signal, taeda as torch
torch.set_num_threads(1)
weight = torch.ones(300_000, 2, 2)
x = torch.ones(2, 5, requires_grad=True)
y = torch.nn.functional.conv1d(x, weight)
seen = []
signal.signal(signal.SIGALRM, lambda *_: seen.append(bytearray(100)))
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
for _ in range(40):
    x.grad = None
    y.backward(torch.ones_like(y), retain_graph=True)
signal.setitimer(signal.ITIMER_REAL, 0)
assert x.grad.tolist() == [[300_000.0, 600_000, 600_000, 600_000, 300_000]] * 2, x.grad
print("whole", len(seen) > 0)
"""


def test_signals_during_products_of_onednn_damage_nothing() -> None:
    """Its stack pointer lies in memory of malloc's there."""
    done = subprocess.run([sys.executable, "-c", SIGNALS], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "whole True\n"), done.stderr


PRODUCT = """
import taeda as torch
a = torch.arange(4096.).reshape(64, 64).remainder(7)
assert torch.equal((a.bfloat16() @ a.bfloat16()).float(), (a @ a).bfloat16().float())
"""


def test_bf16_products_run_on_what_this_processor_says_it_is() -> None:
    """PyTorch ends in SIGILL in virtual machines that show AMX without the sizes of its tiles."""
    env = {name: value for name, value in os.environ.items() if name != LIMIT}
    done = subprocess.run([sys.executable, "-c", PRODUCT], env=env, capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stderr)
