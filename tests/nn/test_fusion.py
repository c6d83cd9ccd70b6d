"""Batch norm and the ReLU after it, which Sequential computes in one pass: against NumPy in float64
and PyTorch, and that nobody who asks for the values in between misses them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda
from taeda import nn

EPS = 1e-5


def reference(
    x: np.ndarray, w: np.ndarray, b: np.ndarray, gy: np.ndarray, ceiling: float
) -> list[np.ndarray]:
    """The result and the gradients of x, w and b."""
    x, w, b, gy = (a.astype(np.float64) for a in (x, w, b, gy))
    axes = (0, *range(2, x.ndim))
    shape = [1, -1] + [1] * (x.ndim - 2)
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    normal = (x - mean) / np.sqrt(var + EPS)
    z = normal * w.reshape(shape) + b.reshape(shape)
    g = np.where((z > 0) & (z < ceiling), gy, 0)
    gw, gb = (g * normal).sum(axes), g.sum(axes)
    n = x.size / x.shape[1]
    inner = g - gb.reshape(shape) / n - normal * gw.reshape(shape) / n
    return [np.clip(z, 0, ceiling), w.reshape(shape) / np.sqrt(var + EPS) * inner, gw, gb]


SIZES = [(6, 5), (4, 3, 9), (2, 3, 5, 7), (3, 40, 4, 4), (2, 2, 50, 83), (2, 3, 2, 3, 4)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels last"])
@pytest.mark.parametrize("activation", [nn.ReLU, nn.ReLU6])
def test_values_and_gradients(sizes: tuple[int, ...], last: bool, activation: Any) -> None:
    rng = np.random.default_rng(len(sizes))
    x = rng.normal(2, 3, sizes).astype("float32")
    gy = rng.normal(size=sizes).astype("float32")
    norm = {2: nn.BatchNorm1d, 3: nn.BatchNorm1d, 4: nn.BatchNorm2d, 5: nn.BatchNorm3d}[len(sizes)](
        sizes[1], eps=EPS
    )
    w, b = (rng.normal(3, 2, sizes[1]).astype("float32") for _ in range(2))
    with taeda.no_grad():
        norm.weight.copy_(taeda.tensor(w))
        norm.bias.copy_(taeda.tensor(b))
    model = nn.Sequential(nn.Sequential(nn.Identity(), norm), activation(), nn.Identity())
    t = taeda.tensor(x)
    if last and len(sizes) >= 4:
        t = t.contiguous(
            memory_format=taeda.channels_last if len(sizes) == 4 else taeda.channels_last_3d
        )
    t.requires_grad_()
    y = model(t)
    y.backward(taeda.tensor(gy))
    want = reference(x, w, b, gy, 6.0 if activation is nn.ReLU6 else np.inf)
    for got, value in zip((y.detach(), t.grad, norm.weight.grad, norm.bias.grad), want):
        np.testing.assert_allclose(got.numpy(), value, rtol=2e-4, atol=2e-4)
    axes = (0, *range(2, x.ndim))
    np.testing.assert_allclose(norm.running_mean.numpy(), 0.1 * x.mean(axes), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.9 + 0.1 * x.var(axes, ddof=1), rtol=1e-5)
    assert norm.num_batches_tracked.item() == 1
    assert y.stride() == t.stride()


@pytest.mark.parametrize("sizes", [(8, 24, 5, 5), (4, 3, 60, 60)], ids=str)
def test_threads_change_nothing(sizes: tuple[int, ...]) -> None:
    model = nn.Sequential(nn.BatchNorm2d(sizes[1]), nn.ReLU())
    x = taeda.randn(*sizes, requires_grad=True)
    threads, results = taeda.get_num_threads(), []
    try:
        for n in (1, 2):
            taeda.set_num_threads(n)
            y = model(x)
            results.append([y, *taeda.autograd.grad(y.square().sum(), [x, *model.parameters()])])
    finally:
        taeda.set_num_threads(threads)
    assert all(taeda.equal(a, b) for a, b in zip(*results))


def test_half_precision() -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(1).normal(size=(4, 3, 5, 5)).astype("float32")
    results = []
    for framework in (taeda, torch):
        model = framework.nn.Sequential(framework.nn.BatchNorm2d(3), framework.nn.ReLU())
        x = framework.tensor(values).bfloat16().requires_grad_()
        y = model(x)
        y.sum().backward()
        assert y.dtype == framework.bfloat16
        results.append([y.detach().float().numpy(), x.grad.float().numpy()])
    for got, want in zip(*results):
        np.testing.assert_allclose(got, want, atol=3e-2)


def test_second_derivatives() -> None:
    norm = nn.BatchNorm1d(3).double()
    model = nn.Sequential(norm, nn.ReLU6())
    x = taeda.randn(5, 3, 4, dtype=taeda.float64, requires_grad=True)
    call = lambda t: model(t)  # noqa: E731
    assert taeda.autograd.gradcheck(call, (x,))
    assert taeda.autograd.gradgradcheck(call, (x,))


def test_hooks_see_the_values_in_between() -> None:
    norm, relu = nn.BatchNorm2d(2), nn.ReLU(inplace=True)
    model = nn.Sequential(norm, relu)
    x = taeda.randn(3, 2, 4, 4)
    seen: list[float] = []
    handle = norm.register_forward_hook(lambda m, args, y: seen.append(y.min().item()))
    model(x)
    handle.remove()
    handle = relu.register_forward_pre_hook(lambda m, args: seen.append(args[0].min().item()))
    model(x)
    handle.remove()
    handle = nn.modules.module.register_module_forward_hook(
        lambda m, args, y: seen.append(y.min().item()) if m is norm else None
    )
    model(x)
    handle.remove()
    norm.forward = lambda t: t - 9  # type: ignore[method-assign]
    assert len(seen) == 3
    assert max(seen) < 0
    assert model(x + 7).max().item() < 5


def test_subclasses_are_called() -> None:
    class Shifted(nn.BatchNorm2d):
        def forward(self, input: Any) -> Any:
            return super().forward(input) + 100

    assert nn.Sequential(Shifted(2), nn.ReLU())(taeda.randn(3, 2, 4, 4)).min().item() > 50


def test_evaluation_uses_the_running_statistics() -> None:
    model = nn.Sequential(nn.BatchNorm2d(2), nn.ReLU6()).eval()
    y = model(taeda.full((1, 2, 2, 2), 9.0))
    assert y.unique().tolist() == [6.0]


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (taeda.ones(2, 3, 4, 4), "should contain 3 elements not 2"),
        (taeda.ones(2, 2, 4), "expected 4D input"),
        (taeda.ones(1, 2, 1, 1), "Expected more than 1 value per channel"),
    ],
)
def test_errors_are_those_of_the_norm(x: Any, message: str) -> None:
    model = nn.Sequential(nn.Sequential(nn.BatchNorm2d(2)), nn.ReLU())
    with pytest.raises((RuntimeError, ValueError), match=message):
        model(x)
