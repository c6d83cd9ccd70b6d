"""Normal distribution functions and modified Bessel functions, against SciPy and PyTorch."""

import numpy as np
import pytest

import taeda

special = pytest.importorskip("scipy.special")

REAL = np.array(
    [-1e300, -700, -40, -26.6, -5, -1.01, -0.5, -1e-9, 0, 1e-300, 0.3, 1, 3.7, 9.9, 10.1]
)
LARGE = np.array([19.9, 20.1, 26.5, 60, 700, 1e4, np.inf, -np.inf, np.nan])
LARGEST = [1.7e308, -1.7e308]
GRIDS = {
    "erfcx": np.concatenate([REAL[3:], LARGE]),
    "ndtr": np.concatenate([REAL[4:], [40.0, np.inf, -np.inf, np.nan]]),
    "log_ndtr": np.concatenate([REAL[1:], [40.0, np.nan]]),
    "ndtri": np.array(
        [-0.1, 0, 1e-300, 1e-20, 1e-3, 0.1, 0.5, 0.6, 0.975, 1 - 1e-12, 1, 1.1, np.nan]
    ),
    "i0": np.concatenate([REAL[1:], LARGE[:5], LARGE[6:], LARGEST]),
    "i0e": np.concatenate([REAL[1:], LARGE, LARGEST]),
    "i1": np.concatenate([REAL[1:], LARGE[:5], LARGE[6:], LARGEST]),
    "i1e": np.concatenate([REAL[1:], LARGE, LARGEST]),
    "entr": np.concatenate([REAL, LARGE]),
}


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(name, dtype):
    x = GRIDS[name].astype(dtype)
    with np.errstate(all="ignore"):
        truth = getattr(special, name)(x.astype("float64")).astype(dtype)
    ours = getattr(taeda.special, name)(taeda.from_numpy(x)).numpy()
    assert ours.dtype == dtype
    rtol = 5e-6 if dtype == "float32" else 4e-13
    # ndtr is (1 + erf(x / sqrt 2)) / 2, as in PyTorch: right to a rounding of 1.
    atol = 2 * np.finfo(dtype).eps if name == "ndtr" else 1e-37
    np.testing.assert_allclose(ours, truth, rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", GRIDS)
def test_against_pytorch(name):
    torch = pytest.importorskip("torch")
    numbers = np.array([0.02, 0.3, 0.5, 0.9, 2.5, -0.7, -3.0, 0.0][: 4 if name == "ndtri" else 8])
    results = []
    for framework in (taeda, torch):
        x = framework.from_numpy(numbers).requires_grad_()
        y = getattr(framework.special, name)(x)
        y.sum().backward()
        integer = getattr(framework.special, name)(framework.tensor([0, 1]))
        results.append((y.detach().numpy(), x.grad.numpy(), integer.numpy()))
    for a, b in zip(*results):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)


def test_log_ndtr_has_gradients_in_both_tails():
    x = taeda.tensor([-30.0, -1.0, 30.0], dtype=taeda.float64, requires_grad=True)
    taeda.special.log_ndtr(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([30.03326, 1.525135, 0.0], abs=1e-5)


# The first two derivatives, by 50 digits: where the formulas with the function's value cancel.
FAR = {
    "erfcx": (
        [0.0, 2.5, 26.9, 27.1, 60.0, 1e4, 1e20],
        lambda mp, x: 2 * x * _erfcx(mp, x) - 2 / mp.sqrt(mp.pi),
        lambda mp, x: (2 + 4 * x * x) * _erfcx(mp, x) - 4 * x / mp.sqrt(mp.pi),
    ),
    "log_ndtr": (
        [3.0, 0.5, -1.5, -29.9, -30.1, -60.0, -1e4, -1e15],
        lambda mp, x: _hazard(mp, x),
        lambda mp, x: -_hazard(mp, x) * (x + _hazard(mp, x)),
    ),
}


def _erfcx(mp, x):
    """e^(x^2) erfc(x), for large x by its series [DLMF 7.12.1]."""
    if x < 1000:
        return mp.exp(x * x) * mp.erfc(x)
    terms = ((-1) ** k * mp.fac2(2 * k - 1) / (2 * x * x) ** k for k in range(12))
    return sum(terms) / x / mp.sqrt(mp.pi)


def _hazard(mp, x):
    return mp.sqrt(2 / mp.pi) / _erfcx(mp, -x / mp.sqrt(2))


@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("dtype, rtol", [("float32", 2e-1), ("float64", 2e-9)])
def test_derivatives_far_out(name, dtype, rtol):
    mpmath = pytest.importorskip("mpmath")
    points, slope, bend = FAR[name]
    x = taeda.tensor(points, dtype=getattr(taeda, dtype), requires_grad=True)
    y = getattr(taeda.special, name)(x)
    (first,) = taeda.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = taeda.autograd.grad(first.sum(), x)
    with mpmath.workdps(200):
        for formula, ours, tolerance in ((slope, first, rtol / 100), (bend, second, rtol)):
            truth = [float(formula(mpmath, mpmath.mpf(v))) for v in x.tolist()]
            np.testing.assert_allclose(ours.tolist(), truth, rtol=tolerance, atol=1e-37)


@pytest.mark.parametrize("name, at", [("erfcx", np.inf), ("log_ndtr", -1e20)])
def test_derivatives_at_the_end(name, at):
    x = taeda.tensor([at], dtype=taeda.float32, requires_grad=True)
    (first,) = taeda.autograd.grad(getattr(taeda.special, name)(x), x, create_graph=True)
    (second,) = taeda.autograd.grad(first, x)
    expected = {"erfcx": [0.0, 0.0], "log_ndtr": [1e20, -1.0]}[name]
    assert [first.item(), second.item()] == pytest.approx(expected)
