"""Backward writes over gradients that nobody else holds (tests/ops/last_use_test.cc), and over no
others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F

N = 1 << 15  # more elements than what is computed without the loop engine
FUNCTIONS: dict[str, Callable] = {
    "relu": F.relu,
    "relu in place": lambda x: F.relu_(x * 1),
    "relu6 in place": lambda x: F.hardtanh_(x * 1, 0.0, 6.0),
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": taeda.tanh,
    "exp": taeda.exp,
    "times a number": lambda x: x * 3,
    "divided": lambda x: x / 7,
    "squared": lambda x: x**2,
    "dropped": lambda x: taeda.where(x > 0, x, taeda.zeros_like(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "complex64"])
def test_chains_give_the_gradients_of_small_pieces(name: str, dtype: str) -> None:
    if dtype == "complex64" and name not in ("tanh", "exp", "times a number", "divided"):
        pytest.skip("of real numbers only")
    taeda.manual_seed(0)
    x = taeda.randn(N, dtype=getattr(taeda, dtype))
    function = FUNCTIONS[name]

    def gradient(piece: taeda.Tensor) -> taeda.Tensor:
        leaf = piece.clone().requires_grad_()
        y = function(function(leaf * 0.5) + leaf)
        (y.abs().sum() if dtype == "complex64" else y.sum()).backward()
        return leaf.grad

    whole = gradient(x)
    # Pieces this small take another way through the operators, without reuse of memory.
    pieces = taeda.cat([gradient(x[i : i + 1024]) for i in range(0, N, 1024)])
    atol = 3e-2 if dtype == "bfloat16" else 1e-5
    np.testing.assert_allclose(
        taeda.view_as_real(whole).numpy() if dtype == "complex64" else whole.float().numpy(),
        taeda.view_as_real(pieces).numpy() if dtype == "complex64" else pieces.float().numpy(),
        rtol=1e-5,
        atol=atol,
    )


def test_the_programs_own_gradient_stays() -> None:
    x = taeda.randn(N, requires_grad=True)
    gy = taeda.ones(N)
    x.tanh().exp().backward(gy)
    assert (gy == 1).all()


def test_gradients_that_hooks_keep_stay() -> None:
    x = taeda.randn(N, requires_grad=True)
    kept: list[taeda.Tensor] = []
    y = x * 1
    y.register_hook(kept.append)
    z = y.tanh()
    z.retain_grad()
    (z * 5).sum().backward()
    np.testing.assert_array_equal(z.grad.numpy(), np.full(N, 5, "float32"))
    np.testing.assert_allclose(
        kept[0].numpy(), 5 * (1 - np.tanh(x.detach().numpy()) ** 2), 1e-4, 1e-5
    )
    np.testing.assert_array_equal(kept[0].numpy(), x.grad.numpy())


def test_captured_gradients_stay() -> None:
    x = taeda.randn(N, requires_grad=True)
    y = x * 2
    z = y.exp()
    gz, gy, gx = taeda.autograd.grad((z * 3).sum(), [z, y, x])
    np.testing.assert_array_equal(gz.numpy(), np.full(N, 3, "float32"))
    np.testing.assert_allclose(gy.numpy(), 3 * np.exp(2 * x.detach().numpy()), rtol=1e-5)
    np.testing.assert_allclose(gx.numpy(), 2 * gy.numpy(), rtol=1e-6)


def test_a_gradient_for_two_stays_for_the_second() -> None:
    a, b = taeda.randn(N, requires_grad=True), taeda.randn(N, requires_grad=True)
    (a * b).exp().sum().backward()
    want = np.exp(a.detach().numpy() * b.detach().numpy())
    np.testing.assert_allclose(a.grad.numpy(), want * b.detach().numpy(), rtol=1e-4)
    np.testing.assert_allclose(b.grad.numpy(), want * a.detach().numpy(), rtol=1e-4)


def test_gradients_of_both_terms_of_a_sum() -> None:
    a, b = taeda.randn(N, requires_grad=True), taeda.randn(N, requires_grad=True)
    (a.tanh() + b.exp()).pow(2).sum().backward()
    x, y = a.detach().double().numpy(), b.detach().double().numpy()
    g = 2 * (np.tanh(x) + np.exp(y))
    np.testing.assert_allclose(a.grad.numpy(), g * (1 - np.tanh(x) ** 2), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(b.grad.numpy(), g * np.exp(y), rtol=1e-3, atol=1e-4)


def test_recorded_gradients_are_not_written() -> None:
    x = taeda.randn(N, dtype=taeda.float64, requires_grad=True)
    (g,) = taeda.autograd.grad(x.tanh().exp().sum(), x, create_graph=True)
    g.square().sum().backward()
    v = x.detach().numpy()
    t, e = np.tanh(v), np.exp(np.tanh(v))
    d = 1 - t**2
    np.testing.assert_allclose(g.detach().numpy(), e * d, rtol=1e-9)
    np.testing.assert_allclose(
        x.grad.numpy(), 2 * e * d * (e * d * d - 2 * t * d * e), rtol=1e-6, atol=1e-12
    )
