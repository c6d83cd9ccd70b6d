"""Bessel and Airy functions, against SciPy; their edges against PyTorch."""

import os

import numpy as np
import pytest

import taeda

special = pytest.importorskip("scipy.special")

TRUTHS = {
    "bessel_j0": special.j0,
    "bessel_j1": special.j1,
    "bessel_y0": special.y0,
    "bessel_y1": special.y1,
    "modified_bessel_i0": special.i0,
    "modified_bessel_i1": special.i1,
    "modified_bessel_k0": special.k0,
    "modified_bessel_k1": special.k1,
    "scaled_modified_bessel_k0": special.k0e,
    "scaled_modified_bessel_k1": special.k1e,
    "spherical_bessel_j0": lambda x: special.spherical_jn(0, x),
    "airy_ai": lambda x: special.airy(x)[0],
}
BOTH = np.concatenate([np.linspace(-30, 30, 401), [1e-30, 1e-8, 0.5, 60.0, 80.0, 103.0]])
POSITIVE = np.concatenate([np.linspace(0.01, 40, 401), [1e-30, 1e-8, 1.999, 2, 2.001, 700.0]])


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_values(name, dtype):
    of_positive = "_y" in name or "_k" in name
    x = (POSITIVE if of_positive else BOTH).astype(dtype)
    truth = TRUTHS[name](x.astype("float64"))
    ours = getattr(taeda.special, name)(taeda.from_numpy(x)).numpy()
    assert ours.dtype == dtype
    rtol, atol = (3e-6, 1e-7) if dtype == "float32" else (2e-12, 4e-15)
    tiny = np.finfo(dtype).tiny
    # Near the zeros of what oscillates only the absolute error is small.
    atol = max(atol, 1e-13) if name == "airy_ai" else atol
    atol = tiny if (of_positive and "_y" not in name) or "_i" in name else atol
    np.testing.assert_allclose(ours, truth.astype(dtype), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", TRUTHS)
def test_edges_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    x = [0.0, -0.0, -1.0, np.inf, -np.inf, np.nan, 1e-30, 120.0, -200.0]
    for dtype in ("float32", "float64"):
        ours, theirs = (
            getattr(framework.special, name)(framework.tensor(x, dtype=getattr(framework, dtype)))
            for framework in (taeda, torch)
        )
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", TRUTHS)
def test_dtypes_are_pytorchs(name):
    torch = pytest.importorskip("torch")
    function = getattr(taeda.special, name)
    for dtype in ("bool", "int64", "float16", "bfloat16", "complex64"):
        ours, theirs = taeda.ones(2, dtype=getattr(taeda, dtype)), torch.ones(2)
        try:
            expected = getattr(torch.special, name)(theirs.to(getattr(torch, dtype)))
        except NotImplementedError as error:
            with pytest.raises(NotImplementedError, match=str(error)[:20]):
                function(ours)
        else:
            assert str(function(ours).dtype)[6:] == str(expected.dtype)[6:]
    x = taeda.ones(2, requires_grad=True)
    assert not function(x).requires_grad


def test_out_and_strides():
    x = taeda.linspace(0.5, 3, 12).view(3, 4).t()
    out = taeda.empty(4, 3)
    assert taeda.special.bessel_j0(x, out=out) is out
    np.testing.assert_allclose(out.numpy(), special.j0(x.numpy()), rtol=1e-5)


@pytest.mark.parametrize("name", [name for name in TRUTHS if "bessel" in name])
def test_floats_are_off_by_an_ulp_at_most(name):
    rng = np.random.default_rng(0)
    for low, high in [(1e-3, 2), (2, 8), (8, 80)]:
        x = rng.uniform(low, high, 2000).astype("float32")
        truth = TRUTHS[name](x.astype("float64"))
        ours = getattr(taeda.special, name)(taeda.from_numpy(x)).numpy().astype("float64")
        ulps = np.abs(ours - truth) / np.spacing(np.abs(truth).astype("float32"))
        limit = 1 if "_i" not in name else 4  # e^x and a fit of I_n(x) e^-x, each rounded
        assert ulps[np.abs(truth) > 1e-30].max() <= limit


@pytest.mark.parametrize("name", TRUTHS)
def test_doubles_are_off_by_little_more_than_their_roundings(name):
    mpmath = pytest.importorskip("mpmath")
    exact = {
        "bessel_j0": lambda x: mpmath.besselj(0, x),
        "bessel_j1": lambda x: mpmath.besselj(1, x),
        "bessel_y0": lambda x: mpmath.bessely(0, x),
        "bessel_y1": lambda x: mpmath.bessely(1, x),
        "modified_bessel_i0": lambda x: mpmath.besseli(0, x),
        "modified_bessel_i1": lambda x: mpmath.besseli(1, x),
        "modified_bessel_k0": lambda x: mpmath.besselk(0, x),
        "modified_bessel_k1": lambda x: mpmath.besselk(1, x),
        "scaled_modified_bessel_k0": lambda x: mpmath.besselk(0, x) * mpmath.exp(x),
        "scaled_modified_bessel_k1": lambda x: mpmath.besselk(1, x) * mpmath.exp(x),
        "spherical_bessel_j0": lambda x: mpmath.sin(x) / x,
        "airy_ai": mpmath.airyai,
    }[name]
    rng = np.random.default_rng(0)
    ends = [(0.001, 2), (2, 8), (8, 100)] + ([(-4, 0), (-30, -4)] if name == "airy_ai" else [])
    x = np.concatenate([rng.uniform(low, high, 40) for low, high in ends])
    ours = getattr(taeda.special, name)(taeda.from_numpy(x)).numpy()
    with mpmath.workdps(40):
        truth = np.array([float(exact(mpmath.mpf(float(value)))) for value in x])
    waves = any(part in name for part in ("_j", "_y", "airy"))
    scale = np.maximum(np.abs(truth), 0.2) if waves and name != "spherical" else np.abs(truth)
    if name == "airy_ai":
        scale = np.where(x > 0, np.abs(truth), scale)
    # Without fused multiply-add sums are rounded once more, and Ai's angle is not in two parts.
    unfused = os.environ.get("TAEDA_CPU") == "baseline"
    limit = 1e-13 if unfused and name == "airy_ai" else 5e-15 if unfused else 2e-15
    assert (np.abs(ours - truth) / scale).max() < limit
