"""Elementwise functions at infinities, NaN, signed zeros, denormals and huge numbers.

The truth is PyTorch on single elements: its vector loops differ from its scalar ones at a few of
these values (gelu(inf) is NaN there, sinh(89) infinite), and there the scalar ones are right.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import taeda
from taeda.nn import functional as F

UNARY = """
abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2
expm1 floor frac lgamma log log10 log1p log2 logit nan_to_num neg positive rad2deg reciprocal relu
round rsqrt sigmoid sign sgn signbit sin sinc sinh sqrt square tan tanh trunc isnan isinf isfinite
logical_not
""".split()
ACTIVATIONS = """
relu elu selu celu silu gelu mish softplus softsign tanhshrink hardtanh hardsigmoid hardswish
hardshrink softshrink leaky_relu logsigmoid
""".split()
DTYPES = {"float32": np.float32, "float64": np.float64}
# where PyTorch overflows although the result does not, or loses what is left of it
EXCEPT = {"hardswish": 1e30}


def values(dtype: str) -> np.ndarray:
    kind = DTYPES[dtype]
    limits = np.finfo(kind)
    least = np.nextafter(kind(0), kind(1))
    one_sided = [np.inf, 0.0, least, limits.tiny / 4, limits.tiny, limits.max, 1e30, 1e10, 1e5]
    one_sided += [745.0, 710.0, 103.9, 100.0, 89.0, 88.7, 20.0, 3.0, 2.0, 1.0, 0.5, 1e-3, 1e-10]
    return np.array([np.nan, *one_sided, *(-v for v in one_sided)], dtype=kind)


def place(framework: Any, name: str) -> Any:
    return getattr(framework if name in UNARY else framework.nn.functional, name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", dict.fromkeys(UNARY + ACTIVATIONS))
def test_values(name: str, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    x = values(dtype)
    limit = EXCEPT.get(name, math.inf)
    x = x[~(np.abs(x) > limit) | np.isinf(x)]
    mine, theirs = place(taeda, name), place(torch, name)
    # In vectors with all kinds of neighbours, and alone.
    together = mine(taeda.tensor(x)).numpy()
    alone = np.array([mine(taeda.tensor(x[i : i + 1])).numpy()[0] for i in range(len(x))])
    expected = np.array([theirs(torch.tensor(x[i : i + 1])).numpy()[0] for i in range(len(x))])
    if expected.dtype == bool:
        np.testing.assert_array_equal(together, expected)
        np.testing.assert_array_equal(alone, expected)
        return
    # gelu subtracts erf from 1: an absolute error is all that either framework promises
    least = 1e-6 if name == "gelu" else 4 * float(np.nextafter(x.dtype.type(0), x.dtype.type(1)))
    tolerance = 2e-5 if dtype == "float32" else 1e-9
    for got in (together, alone):
        np.testing.assert_allclose(got, expected, rtol=tolerance, atol=least)
    zero = (expected == 0) & (together == 0)
    np.testing.assert_array_equal(np.signbit(together[zero]), np.signbit(expected[zero]))


def gradient(function: Any, *x: float, dtype: Any = taeda.float32) -> np.ndarray:
    t = taeda.tensor(x, dtype=dtype, requires_grad=True)
    function(t).sum().backward()
    assert t.grad is not None
    return t.grad.numpy()


def test_gradient_of_elu_far_below_zero() -> None:
    F = taeda.nn.functional
    x = [-80.0, -20.0, -10.0, -1.0, 0.0, 2.0]
    expected = np.where(np.array(x) > 0, 1.0, np.exp(x))
    np.testing.assert_allclose(gradient(F.elu, *x), expected, rtol=2e-6)
    np.testing.assert_allclose(gradient(F.celu, *x), expected, rtol=2e-6)
    scaled = 1.0507009873554805 * np.where(np.array(x) > 0, 1.0, 1.6732632423543772 * expected)
    np.testing.assert_allclose(gradient(F.selu, *x), scaled, rtol=2e-6)
    assert np.isnan(gradient(F.elu, math.nan)).all()


def test_gradient_of_logit_at_its_ends() -> None:
    got = gradient(taeda.logit, 0.0, 1.0, 0.5, -0.1, 1.1)
    np.testing.assert_array_equal(got, [math.inf, math.inf, 4.0, math.nan, math.nan])


def test_gradient_of_sinc_near_zero() -> None:
    x = np.array([0.0, 1e-30, 1e-3, -1e-3, 0.05, 0.31, 0.33, 1.5])
    z = (np.pi * x.astype(np.longdouble)) ** 2
    with np.errstate(all="ignore"):
        far = np.cos(np.pi * x) / x - np.sin(np.pi * x) / (np.pi * x**2)
    near = -np.pi * (np.pi * x) / 3 * (1 - z / 10 * (1 - z / 28 * (1 - z / 54 * (1 - z / 88))))
    expected = np.where(np.abs(x) < 0.2, near, far).astype(float)
    np.testing.assert_allclose(gradient(taeda.sinc, *x), expected, rtol=3e-6)
    np.testing.assert_allclose(gradient(taeda.sinc, *x, dtype=taeda.float64), expected, rtol=1e-11)


def test_lgamma_does_not_depend_on_its_neighbours() -> None:
    x = taeda.rand(3200, dtype=taeda.float64) * 50
    alone = taeda.lgamma(x)
    x[::8] = -0.5
    mixed = taeda.lgamma(x)
    assert taeda.equal(mixed[1:8], alone[1:8])
    rest = taeda.arange(3200) % 8 != 0
    assert taeda.equal(mixed[rest], alone[rest])
    assert mixed[0].item() == pytest.approx(1.2655121234846454, rel=1e-15)


@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64])
@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6, 2.0**40])
@pytest.mark.parametrize("dim", [0, 1])
def test_log_softmax_beside_a_large_maximum(dtype: taeda.dtype, offset: float, dim: int) -> None:
    """What is subtracted from all scores changes nothing: 2^40 and its multiples are exact."""
    taeda.manual_seed(0)
    x = (taeda.randn(40, 40, dtype=taeda.float64) * 4).to(dtype) + offset
    exact = taeda.log_softmax(x.double() - offset, dim)
    got = taeda.log_softmax(x, dim)
    assert (got.double() - exact).abs().max().item() < 1e-5


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("offset", [1e6, 3e15])
def test_cross_entropy_beside_a_large_maximum(offset: float, smoothing: float) -> None:
    x = taeda.full((4, 6), offset, requires_grad=True)
    loss = F.cross_entropy(x, taeda.tensor([0, 1, 2, 3]), label_smoothing=smoothing)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(6), rel=1e-6)
    row = [1 / 6 - smoothing / 6] * 6
    row[0] -= 1 - smoothing
    assert (x.grad[0] * 4).tolist() == pytest.approx(row, rel=1e-5)


def test_gradient_of_hardsigmoid_at_nan_and_its_ends() -> None:
    nan, inf = float("nan"), float("inf")
    x = taeda.tensor([nan, -3.0, 3.0, 0.0, inf, -inf], requires_grad=True)
    y = taeda.nn.functional.hardsigmoid(x)
    np.testing.assert_array_equal(y.detach().numpy(), np.float32([nan, 0, 1, 0.5, 1, 0]))
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.float32([0, 0, 0, 1 / 6, 0, 0]))
