"""The operators behind gamma and Dirichlet draws, and incomplete gamma functions."""

from __future__ import annotations

import numpy as np
import pytest

import taeda

torch = pytest.importorskip("torch")
special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")

SHAPES = np.concatenate(
    [np.random.RandomState(0).gamma(1.0, 3.0, 500), [1e-3, 0.1, 0.5, 1, 8, 9, 100, 1e4]]
)
DTYPES = ["float32", "float64"]


def both(name: str, *arrays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    results = []
    for framework in (taeda, torch):
        framework.manual_seed(3)
        arguments = [framework.from_numpy(a) for a in arrays]
        results.append(getattr(framework, name)(*arguments).numpy())
    return results[0], results[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_gamma_draws(dtype: str) -> None:
    a, b = both("_standard_gamma", SHAPES.astype(dtype))
    np.testing.assert_array_equal(a, b)
    strided = np.ascontiguousarray(SHAPES[:60].reshape(6, 10).astype(dtype)).T
    np.testing.assert_array_equal(*both("_standard_gamma", strided))


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.5])
def test_gamma_draws_are_gamma_distributed(shape: float) -> None:
    taeda.manual_seed(1)
    x = taeda._standard_gamma(taeda.full((20_000,), shape, dtype=taeda.float64)).numpy()
    assert stats.kstest(x, stats.gamma(shape).cdf).pvalue > 1e-3


@pytest.mark.parametrize("dtype", DTYPES)
def test_dirichlet_draws(dtype: str) -> None:
    concentration = SHAPES[:300].reshape(100, 3).astype(dtype)
    np.testing.assert_array_equal(*both("_sample_dirichlet", concentration))
    tiny = np.full((5, 4), 1e-3, dtype)
    np.testing.assert_array_equal(*both("_sample_dirichlet", tiny))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gamma_gradients(dtype: str) -> None:
    shapes = SHAPES.astype(dtype)
    _, draws = both("_standard_gamma", shapes)
    a, b = both("_standard_gamma_grad", shapes, draws)
    np.testing.assert_allclose(a, b, rtol=1e-6)


def test_gamma_gradients_are_implicit_derivatives() -> None:
    """-(dF/da) / (dF/dx), F by SciPy and the derivative by differences."""
    a, x = np.meshgrid([0.3, 1.0, 3.0, 12.0, 40.0], [0.2, 0.7, 1.5, 4.0, 12.3, 38.0])
    h = 1e-5
    by_shape = (special.gammainc(a + h, x) - special.gammainc(a - h, x)) / (2 * h)
    truth = -by_shape / stats.gamma(a).pdf(x)
    likely = (special.gammainc(a, x) > 1e-4) & (special.gammaincc(a, x) > 1e-4)
    ours = taeda._standard_gamma_grad(taeda.from_numpy(a), taeda.from_numpy(x)).numpy()
    np.testing.assert_allclose(ours[likely], truth[likely], rtol=2e-3)


def test_beta_gradients() -> None:
    concentration = SHAPES[:600].reshape(-1, 4)[:125]
    _, x = both("_sample_dirichlet", concentration)
    total = concentration.sum(-1, keepdims=True) + 0 * concentration
    a, b = both("_dirichlet_grad", x, concentration, total)
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-300)


def test_gradient_of_gamma_draws() -> None:
    shape = taeda.tensor([0.5, 3.0, 20.0], dtype=taeda.float64, requires_grad=True)
    x = taeda._standard_gamma(shape)
    (grad,) = taeda.autograd.grad(x.sum(), shape, create_graph=True)
    assert taeda.equal(grad, taeda._standard_gamma_grad(shape, x))
    with pytest.raises(RuntimeError, match="_standard_gamma_grad"):
        taeda.autograd.grad(grad.sum(), shape)


@pytest.mark.parametrize("name", ["_standard_gamma", "_sample_dirichlet"])
def test_types(name: str) -> None:
    for framework in (taeda, torch):
        with pytest.raises(NotImplementedError, match="not implemented for 'Half'"):
            getattr(framework, name)(framework.ones(2, dtype=framework.float16))


@pytest.mark.parametrize(("name", "truth"), [("igamma", "gammainc"), ("igammac", "gammaincc")])
@pytest.mark.parametrize("dtype", DTYPES)
def test_incomplete_gamma(name: str, truth: str, dtype: str) -> None:
    grid = [0.0, 1e-10, 1e-3, 0.2, 1.0, 1.05, 3.0, 9.9, 11.0, 100.0, 1e3, 1.02e3, 1e5, 1e7, np.inf]
    a, x = (g.astype(dtype) for g in np.meshgrid([*grid, -1.0, np.nan], [*grid, -1.0, np.nan]))
    ours, theirs = both(name, a, x)
    np.testing.assert_array_equal(np.isnan(ours), np.isnan(theirs))
    expected = getattr(special, truth)(a.astype("float64"), x.astype("float64"))
    known = ~np.isnan(ours) & np.isfinite(expected)
    rtol = 3e-7 if dtype == "float32" else 1e-10
    np.testing.assert_allclose(ours[known], expected[known], rtol=rtol, atol=1e-37)


@pytest.mark.parametrize("name", ["igamma", "igammac"])
def test_incomplete_gamma_gradient(name: str) -> None:
    a = taeda.tensor([0.5, 2.0, 30.0], dtype=taeda.float64)
    x = taeda.tensor([0.7, 2.5, 28.0], dtype=taeda.float64, requires_grad=True)
    assert taeda.autograd.gradcheck(lambda y: getattr(taeda, name)(a, y), (x,))
    with pytest.raises(RuntimeError, match=f"{name}: the derivative in the first argument"):
        getattr(taeda, name)(a.requires_grad_(), x).sum().backward()
