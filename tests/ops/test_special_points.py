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
