"""Gradients where formulas break down: zeros of norms, kinks, infinities, cancellation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import taeda

INF = float("inf")

Case = tuple[Callable[..., Any], list[list[float]]]
CASES: dict[str, Case] = {
    f"norm {p} of {x}": (lambda t, x, p=p: x.norm(p), [x])
    for p in (0.5, 1, 1.5, 2, 2.5, 3, 4, -1)
    for x in ([0.0, 0.0], [0.0, 2.0], [1.0, 2.0])
}
CASES |= {
    "normalize": (lambda t, x: t.nn.functional.normalize(x, p=3, dim=0), [[0.0, 0.0]]),
    "pairwise distance": (
        lambda t, x, y: t.nn.functional.pairwise_distance(x, y, p=3, eps=0.0),
        [[1.0, 2.0], [1.0, 2.0]],
    ),
    "xlog1py": (
        lambda t, x, y: t.special.xlog1py(x, y),
        [[0.0, 1.0, 0.0, 0.0], [1.0, -1.0, -1.0, INF]],
    ),
    "logaddexp": (lambda t, x, y: t.logaddexp(x, y), [[INF, 1.0, 0.0], [1.0, 800.0, 0.0]]),
    "logaddexp2": (lambda t, x, y: t.logaddexp2(x, y), [[INF, 1.0, 0.0], [1.0, 900.0, 0.0]]),
    "sinc": (lambda t, x: t.sinc(x), [[0.0, 0.1, 0.3, 1.0]]),
    "multi_margin_loss": (
        lambda t, x: t.nn.functional.multi_margin_loss(x[None], t.tensor([1])),
        [[0.0, 1.0]],
    ),
    "squared multi_margin_loss": (
        lambda t, x: t.nn.functional.multi_margin_loss(x[None], t.tensor([0]), p=2),
        [[INF, 1.0, 2.0]],
    ),
    "multilabel_margin_loss": (
        lambda t, x: t.nn.functional.multilabel_margin_loss(x, t.tensor([1, -1])),
        [[0.0, 1.0]],
    ),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_gradient_is_pytorchs(name: str, create_graph: bool) -> None:
    oracle = pytest.importorskip("torch")
    function, values = CASES[name]

    def gradients(t: Any) -> list[list[float]]:
        inputs = [t.tensor(v, dtype=t.float64, requires_grad=True) for v in values]
        y = function(t, *inputs).sum()
        return [g.tolist() for g in t.autograd.grad(y, inputs, create_graph=create_graph)]

    for ours, theirs in zip(gradients(taeda), gradients(oracle), strict=True):
        assert ours == pytest.approx(theirs, rel=1e-9, nan_ok=True)


COMPLEX = [0j, 1 + 2j, 0j, -3j]
SECOND: dict[str, tuple[Callable[..., Any], list[list[Any]]]] = {
    "huber_loss": (
        lambda t, x, y: t.nn.functional.huber_loss(x, y, reduction="none", delta=0.5),
        [[1.0, 2.0, -1.0, INF, -INF], [1.0, 2.5, 1.0, 0.0, 0.0]],
    ),
    "smooth_l1_loss": (
        lambda t, x, y: t.nn.functional.smooth_l1_loss(x, y, reduction="none", beta=0.5),
        [[1.0, 2.25, -1.0], [1.0, 2.0, 1.0]],
    ),
    "elu": (lambda t, x: t.nn.functional.elu(x), [[0.0, -1.0, 1.0, INF, -INF]]),
    "selu": (lambda t, x: t.selu(x), [[0.0, -1.0, 1.0, INF, -INF]]),
    "celu": (lambda t, x: t.celu(x, 0.5), [[0.0, -1.0, 1.0, INF, -INF]]),
    "hardswish": (lambda t, x: t.nn.functional.hardswish(x), [[0.0, -1.0, 1.0, INF, -INF]]),
    "prelu": (lambda t, x, w: t.prelu(x, w), [[-1.0, 1.0, INF], [0.25]]),
    "prelu of infinite slope": (lambda t, x, w: t.prelu(x, w), [[2.0, 1.0, INF], [INF]]),
    "atan2": (lambda t, x, y: t.atan2(x, y), [[0.0, 1.0, 0.0], [0.0, 0.0, -1.0]]),
    "xlogy": (lambda t, x, y: t.xlogy(x, y), [[0.0, 1.0, 0.0], [-1.0, 2.0, 3.0]]),
    "xlog1py": (lambda t, x, y: t.special.xlog1py(x, y), [[0.0, 1.0, 0.0], [-1.0, 2.0, 3.0]]),
    "norm": (lambda t, x: x.norm(), [[0.0, 0.0]]),
    "complex norm": (lambda t, z: z.norm(), [[0j, 0j]]),
    "complex abs": (lambda t, z: z.abs(), [COMPLEX]),
    "complex sgn": (lambda t, z: z.sgn(), [COMPLEX]),
    "complex angle": (lambda t, z: z.angle(), [COMPLEX]),
    "complex std": (lambda t, z: z.std(), [[1 + 1j, 1 + 1j]]),
}


@pytest.mark.parametrize("name", SECOND)
def test_second_gradient_is_pytorchs(name: str) -> None:
    """Where PyTorch's is finite: some of its formulas divide by the zero they then mask."""
    oracle = pytest.importorskip("torch")
    function, values = SECOND[name]

    def gradients(t: Any) -> list[list[complex]]:
        dtype = t.complex128 if name.startswith("complex") else t.float64
        inputs = [t.tensor(v, dtype=dtype, requires_grad=True) for v in values]
        y = function(t, *inputs)
        gy = t.linspace(1, 2, y.numel(), dtype=t.float64).reshape(y.shape).to(y.dtype)
        gy.requires_grad_()
        first = t.autograd.grad(y, inputs, gy, create_graph=True)
        total = sum((g * t.linspace(3, 1, g.numel(), dtype=t.float64)).sum() for g in first)
        second = t.autograd.grad(
            t.view_as_real(total).sum() if total.is_complex() else total,
            [*inputs, gy],
            allow_unused=True,
            materialize_grads=True,
        )
        return [g.resolve_conj().reshape(-1).tolist() for g in (*first, *second)]

    for ours, theirs in zip(gradients(taeda), gradients(oracle), strict=True):
        for mine, expected in zip(ours, theirs, strict=True):
            if abs(expected) < INF:
                assert mine == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_derivative_of_sinc_near_zero() -> None:
    """Its formula cancels there: (cos t - sin t / t) / x."""
    x = taeda.tensor([1e-5, 1e-3, 0.1, 0.19, 0.21, 0.4], requires_grad=True)
    y = taeda.sinc(x).sum()
    (in_one_pass,) = taeda.autograd.grad(y, x, retain_graph=True)
    (by_formula,) = taeda.autograd.grad(y, x, create_graph=True)
    assert by_formula.tolist() == pytest.approx(in_one_pass.tolist(), rel=2e-5)
    zero = taeda.zeros((), dtype=taeda.float64, requires_grad=True)
    hessian = taeda.autograd.functional.hessian(taeda.sinc, zero)
    assert hessian.item() == pytest.approx(-(taeda.pi**2) / 3)
