"""Conversions between all pairs of dtypes, against NumPy and PyTorch."""

import itertools

import numpy as np
import pytest

import taeda

INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
OTHERS = ["bool", "complex32", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2"]
PAIRS = [p for p in itertools.product([*INTEGERS, *FLOATS, *OTHERS], repeat=2) if p[0] != p[1]]


@pytest.mark.parametrize("source", INTEGERS)
@pytest.mark.parametrize("target", [*INTEGERS, "bool", "float32", "float64"])
def test_integers_of_every_size_are_numpys(source, target):
    info = np.iinfo(source)
    rng = np.random.default_rng(0)
    x = rng.integers(info.min, info.max, 1000, dtype=source, endpoint=True)
    x[:4] = [info.min, info.max, 0, 1]
    y = taeda.from_numpy(x).to(getattr(taeda, target)).numpy()
    np.testing.assert_array_equal(y, x.astype(target))


@pytest.mark.parametrize(("source", "target"), PAIRS)
@pytest.mark.filterwarnings("ignore")  # complex32, and the imaginary parts that are lost
def test_numbers_that_fit_are_pytorchs(source, target):
    torch = pytest.importorskip("torch")
    x = (np.arange(777) % 100).astype("float32")
    results = [
        framework.from_numpy(x).to(getattr(framework, source)).to(getattr(framework, target))
        for framework in (taeda, torch)
    ]
    ours, theirs = (
        y.to(framework.complex128).numpy()
        for y, framework in zip(results, (taeda, torch), strict=True)
    )
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "int16", "int32", "uint8", "uint16"])
def test_a_number_beyond_the_type_does_not_change_its_neighbours(source, target):
    for outside in (1e30, -1e30, np.inf, np.nan, 2.0**31, -(2.0**31) * 1.5):
        x = (np.arange(-300, 300) * 0.4).astype(source)
        alone = taeda.tensor([outside], dtype=getattr(taeda, source)).to(getattr(taeda, target))
        x[17] = outside
        y = taeda.from_numpy(x).to(getattr(taeda, target)).numpy()
        x[17] = 0
        with np.errstate(invalid="ignore"):
            expected = x.astype("int64").astype(target)
        expected[17] = alone.numpy()[0]
        np.testing.assert_array_equal(y, expected)


def test_uint8_keeps_the_lowest_bits_of_what_does_not_fit():
    x = taeda.tensor([256.0, 257.0, -1.0, -256.5, 65535.9] * 60)
    expected = np.array([0, 1, 255, 0, 255] * 60, dtype="uint8")
    np.testing.assert_array_equal(x.to(taeda.uint8).numpy(), expected)
