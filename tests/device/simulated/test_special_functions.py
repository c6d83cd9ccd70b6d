"""Functions of one element on a simulated device, by the definitions that the CPU has, too."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import agree, values

import taeda
from taeda import _C

EDGES = [0.0, -0.0, -1.0, 1.0, np.inf, -np.inf, np.nan, 1e-30, 2.0, 120.0, -200.0]
FUNCTIONS = [
    "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1",
    "scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0", "airy_ai",
]  # fmt: skip
POLYNOMIALS = [
    *(f"chebyshev_polynomial_{kind}" for kind in "tuvw"),
    *(f"shifted_chebyshev_polynomial_{kind}" for kind in "tuvw"),
    "hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l",
    "legendre_polynomial_p",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bessel_and_airy_functions(name):
    x = np.concatenate([EDGES, np.linspace(-30, 40, 501), np.geomspace(1e-9, 700, 50)])
    function = getattr(taeda.special, name)
    for dtype in (np.float32, np.float64):
        agree(function, taeda.from_numpy(x.astype(dtype)), what=f"{name} {dtype}")
    agree(function, values("int32", (3, 4)), what=name)
    agree(function, values("float64", (4, 6)).t(), what=name)
    agree(function, values("float32", (0, 4)), what=name)


def test_airy_function_oscillates_as_scipys():
    special = pytest.importorskip("scipy.special")
    x = np.linspace(-60, -2.5, 2000)
    ours = taeda.special.airy_ai(taeda.from_numpy(x).to("cuda")).numpy(force=True)
    np.testing.assert_allclose(ours, special.airy(x)[0], rtol=0, atol=5e-14)


@pytest.mark.parametrize("name", POLYNOMIALS)
def test_orthogonal_polynomials(name):
    function = getattr(taeda.special, name)
    for dtype in (taeda.float32, taeda.float64):
        x = taeda.tensor([*EDGES[:-2], *np.linspace(-1.3, 1.9, 40).tolist()], dtype=dtype)[:, None]
        agree(function, x, taeda.arange(-1, 13), what=f"{name} {dtype}")
    far = taeda.tensor([0.3, -0.9, 1.001], dtype=taeda.float64)[:, None]
    agree(function, far, taeda.tensor([100.0, 600.0, 1000.5, np.nan], dtype=taeda.float64))


def test_gradients_of_gamma_numbers():
    draw = np.random.default_rng(0)
    shapes = np.concatenate([np.geomspace(1e-3, 1e4, 200), [0.1, 0.5, 1, 8, 9]])
    x = np.concatenate([draw.gamma(shapes), shapes[:5], shapes * 0.97])
    shapes = np.concatenate([shapes, shapes[:5], shapes])
    for dtype in (np.float32, np.float64):
        a, b = (taeda.from_numpy(v.astype(dtype)) for v in (shapes, x))
        agree(taeda._standard_gamma_grad, a, b, what=str(dtype))


def test_gradients_of_dirichlet_numbers():
    draw = np.random.default_rng(1)
    alpha = np.geomspace(0.01, 300, 60)[:, None] * np.ones(20)
    total = alpha + np.geomspace(0.02, 200, 20)
    x = np.clip(draw.beta(alpha, total - alpha), 1e-6, 1 - 1e-6)
    for dtype in (np.float32, np.float64):
        tensors = [taeda.from_numpy(v.astype(dtype)) for v in (x, alpha, total)]
        agree(taeda._dirichlet_grad, *tensors, what=str(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bins_of_histograms(dtype):
    x = values(dtype, (500,))
    edges = taeda.linspace(-2, 2, 11, dtype=x.dtype)
    x = taeda.cat([x, edges, taeda.tensor([-9.0, 9, np.inf, -np.inf], dtype=x.dtype)])
    agree(taeda._histogram_bins, x, edges)
    agree(lambda x: taeda.histogram(x[:-2], 10)[0], x)
    agree(lambda x, w: taeda.histogram(x, 7, range=(-1, 1), weight=w)[0], x, x.exp())
    agree(taeda._histogram_bins, x[:0], edges)
