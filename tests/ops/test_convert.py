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


FLOAT8 = ["e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"]


@pytest.mark.parametrize("form", FLOAT8)
@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16"])
def test_float8_of_many_numbers_is_pytorchs(form, source):
    torch = pytest.importorskip("torch")
    code = torch.arange(256, dtype=torch.uint8).view(getattr(torch, f"float8_{form}"))
    exact = code.float().numpy()
    exact = exact[np.isfinite(exact)]
    between = (np.sort(exact)[1:] + np.sort(exact)[:-1]) / 2  # ties, and what is next to them
    with np.errstate(over="ignore"):
        special = np.float32([0, -0.0, np.nan, np.inf, -np.inf, 1e38, -1e38, 1e-45, 1e-39, 2**-127])
        near = [np.nextafter(between, s * np.float32(np.inf)) for s in (-1, 1)]
    x = np.concatenate([exact, -exact, between, *near, special, -special]).astype("float32")
    given = [f.from_numpy(x).to(getattr(f, source)) for f in (taeda, torch)]
    ours, theirs = (
        y.to(getattr(f, f"float8_{form}")).view(f.uint8).numpy()
        for y, f in zip(given, (taeda, torch), strict=True)
    )
    np.testing.assert_array_equal(ours[~np.isnan(x)], theirs[~np.isnan(x)])
    back = given[0].to(getattr(taeda, f"float8_{form}")).float().numpy()
    assert np.isnan(back[np.isnan(x)]).all()  # with either sign
    one = [given[0][i : i + 1].to(getattr(taeda, f"float8_{form}")) for i in range(0, len(x), 7)]
    assert [int(y.view(taeda.uint8)) for y in one] == ours[::7].tolist()  # not by vectors


@pytest.mark.parametrize("source", ["float32", "float64", "int8"])
def test_truth_and_doubles_of_many_numbers(source):
    x = np.resize(np.array([0, 1, -1, 5, 0, -128, 127, 0, 0]), 101).astype(source)
    if source != "int8":
        x[:6] = [np.nan, -0.0, np.inf, 1e-40 if source == "float32" else 1e-310, 0.0, -0.25]
    for n in (1, 7, 64, 101):
        ours = taeda.from_numpy(x[:n].copy())
        np.testing.assert_array_equal(ours.bool().numpy(), x[:n].astype(bool))
        np.testing.assert_array_equal(ours.double().numpy(), x[:n].astype("float64"))


def test_truth_values_become_integers():
    x = np.resize(np.array([0, 1, 2, 255, 128, 0]), 101).astype("uint8")
    truth = taeda.from_numpy(x).view(taeda.bool)
    for target in ("uint8", "int8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        found = truth.to(getattr(taeda, target)).numpy()
        np.testing.assert_array_equal(found, (x != 0).astype(target))


def test_every_bfloat16_is_a_double():
    bits = np.arange(1 << 16, dtype="uint16")
    expected = (bits.astype("uint32") << 16).view("float32").astype("float64")
    found = taeda.from_numpy(bits).view(taeda.bfloat16).double().numpy()
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("source", ["uint16", "uint32", "int8", "int16", "int64"])
@pytest.mark.parametrize("target", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2fnuz"])
def test_integers_become_small_floats_as_pytorchs(source, target):
    torch = pytest.importorskip("torch")
    limits = np.iinfo(source)
    random = np.random.default_rng(0)
    x = random.integers(limits.min, limits.max, 1000, dtype=source, endpoint=True)
    x[:300] %= 127
    x[-2:] = limits.min, limits.max
    ours, theirs = (
        f.from_numpy(x.copy()).to(getattr(f, target)).float().numpy() for f in (taeda, torch)
    )
    np.testing.assert_array_equal(ours, theirs)


def test_uint8_keeps_the_lowest_bits_of_what_does_not_fit():
    x = taeda.tensor([256.0, 257.0, -1.0, -256.5, 65535.9] * 60)
    expected = np.array([0, 1, 255, 0, 255] * 60, dtype="uint8")
    np.testing.assert_array_equal(x.to(taeda.uint8).numpy(), expected)
