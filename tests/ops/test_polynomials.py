"""Orthogonal polynomials, against SciPy; their edges against PyTorch."""

import numpy as np
import pytest

import taeda

special = pytest.importorskip("scipy.special")


def third(n, x):  # V_n = U_n - U_(n-1)
    return special.eval_chebyu(n, x) - np.where(
        n > 0, special.eval_chebyu(np.maximum(n, 1) - 1, x), 0
    )


def fourth(n, x):  # W_n = U_n + U_(n-1)
    return special.eval_chebyu(n, x) + np.where(
        n > 0, special.eval_chebyu(np.maximum(n, 1) - 1, x), 0
    )


TRUTHS = {
    "chebyshev_polynomial_t": special.eval_chebyt,
    "chebyshev_polynomial_u": special.eval_chebyu,
    "chebyshev_polynomial_v": third,
    "chebyshev_polynomial_w": fourth,
    "shifted_chebyshev_polynomial_t": special.eval_sh_chebyt,
    "shifted_chebyshev_polynomial_u": special.eval_sh_chebyu,
    "shifted_chebyshev_polynomial_v": lambda n, x: third(n, 2 * x - 1),
    "shifted_chebyshev_polynomial_w": lambda n, x: fourth(n, 2 * x - 1),
    "hermite_polynomial_h": special.eval_hermite,
    "hermite_polynomial_he": special.eval_hermitenorm,
    "laguerre_polynomial_l": special.eval_laguerre,
    "legendre_polynomial_p": special.eval_legendre,
}


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(name, dtype):
    x = np.linspace(-0.97, 1.93, 60).astype(dtype)[:, None]
    n = np.arange(0, 20)
    truth = TRUTHS[name](n, x.astype("float64"))
    ours = getattr(taeda.special, name)(taeda.from_numpy(x), taeda.from_numpy(n)).numpy()
    assert ours.dtype == dtype
    scale = np.abs(truth).max(axis=0)  # a term's error is that of the largest one
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    assert (np.abs(ours - truth) / scale < tolerance * (1 + n)).all()


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_one_degree_for_all(name, dtype):
    """Neighbours of one degree are computed as a vector, the last ones of 37 as a part of one."""
    x = np.concatenate([np.linspace(-1.3, 1.9, 33), [0, 1, -1, 0.5]]).astype(dtype)
    for n in (0, 1, 2, 6, 7, 19):
        ours = getattr(taeda.special, name)(taeda.from_numpy(x), n).numpy()
        truth = TRUTHS[name](n, x.astype("float64"))
        scale = np.abs(truth).max()
        tolerance = 1e-5 if dtype == "float32" else 1e-13
        np.testing.assert_allclose(ours / scale, truth / scale, rtol=0, atol=tolerance * (1 + n))


@pytest.mark.parametrize("name", TRUTHS)
def test_high_degrees(name):
    if "hermite" in name:
        degrees, x = np.array([100.0]), np.array([0.3])
    else:
        degrees, x = np.array([1000.0, 10000.0]), np.array([0.3, 0.9])
    ours = getattr(taeda.special, name)(taeda.from_numpy(x), taeda.from_numpy(degrees)).numpy()
    truth = TRUTHS[name](degrees.astype(int), x)
    np.testing.assert_allclose(ours, truth, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", TRUTHS)
def test_edges_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    x = [0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, 0.3]  # PyTorch's NaN is at times another element's
    for n in (-1, 0, 1, 2, 5, 9, 2000, 2.7):
        ours, theirs = (
            getattr(framework.special, name)(framework.tensor(x, dtype=framework.float64), n)
            for framework in (taeda, torch)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6, atol=1e-9)
    at_nan = getattr(taeda.special, name)(taeda.tensor(np.nan), taeda.arange(8)).numpy()
    assert np.isnan(at_nan[1:]).all()


def test_numbers_and_dtypes():
    t = taeda.special.chebyshev_polynomial_t
    assert t(2.0, taeda.tensor([3])).tolist() == [26.0]
    assert t(taeda.tensor([2]), taeda.tensor([3])).dtype == taeda.float32
    assert t(taeda.tensor([2.0], dtype=taeda.float64), 3).dtype == taeda.float64
    assert t(taeda.ones(2, 1), taeda.arange(3)).shape == (2, 3)
    for dtype in (taeda.float16, taeda.bfloat16, taeda.complex64):
        with pytest.raises(NotImplementedError, match="chebyshev_polynomial_t_cpu"):
            t(taeda.ones(2, dtype=dtype), 2)
    with pytest.raises(TypeError):
        t(2.0, 3)
