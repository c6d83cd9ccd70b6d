"""Ranks, searches and masks at lengths where loops change, with ties and NaN, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import taeda

RANDOM = np.random.default_rng(0)
DTYPES = ["float32", "float64", "int64", "int32"]


def ties(dtype: str, *sizes: int) -> Any:
    return RANDOM.integers(-20, 20, sizes).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 5, 31, 32, 33, 34, 100, 1000])
def test_ranks(dtype: str, n: int) -> None:
    for a in (ties(dtype, 7, n), RANDOM.standard_normal((7, n)).astype(dtype) * 1000):
        x, ordered = taeda.from_numpy(a), np.sort(a, 1)
        for k in {1, (n + 1) // 2, n}:
            value, place = x.kthvalue(k, 1)
            np.testing.assert_array_equal(value.numpy(), ordered[:, k - 1])
            np.testing.assert_array_equal(
                np.take_along_axis(a, place.numpy()[:, None], 1)[:, 0], value
            )
        np.testing.assert_array_equal(x.median(1)[0].numpy(), ordered[:, (n - 1) // 2])
        for largest in (True, False):
            top, place = x.topk(min(5, n), 1, largest)
            want = ordered[:, ::-1] if largest else ordered
            np.testing.assert_array_equal(top.numpy(), want[:, : min(5, n)])
            np.testing.assert_array_equal(np.take_along_axis(a, place.numpy(), 1), top)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("n, k", [(3000, 100), (3000, 600), (20_000, 1200), (700_000, 100_000)])
def test_the_first_of_equal_elements_come_first(dtype: str, n: int, k: int) -> None:
    a = ties(dtype, n)
    order = np.argsort(-a, kind="stable")[:k]
    top, place = taeda.from_numpy(a).topk(k)
    np.testing.assert_array_equal(place.numpy(), order)
    np.testing.assert_array_equal(top.numpy(), a[order])
    any_order = taeda.from_numpy(a).topk(k, sorted=False)[1].numpy()
    np.testing.assert_array_equal(np.sort(any_order), np.sort(order))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_comes_last_wherever_it_is(dtype: str) -> None:
    for at in (0, 3, 40, 70, 99):
        a = RANDOM.standard_normal(100).astype(dtype)
        a[at] = np.nan
        x = taeda.from_numpy(a)
        assert x.topk(2)[1][0] == at and x.kthvalue(100)[1] == at and x.median(0)[1] == at
        assert at not in x.topk(5, largest=False)[1].tolist()
        np.testing.assert_array_equal(x.topk(5, largest=False)[0].numpy(), np.sort(a)[:5])


@pytest.mark.parametrize("dtype", [*DTYPES, "uint8"])
@pytest.mark.parametrize("m", [0, 1, 2, 7, 64, 1000])
def test_searches(dtype: str, m: int) -> None:
    boundaries = np.sort(ties(dtype, m) if dtype != "uint8" else ties("int64", m).astype("uint8"))
    for n in (1, 7, 8, 9, 3000):
        a = ties("int64", n).astype(dtype)
        x, b = taeda.from_numpy(a), taeda.from_numpy(boundaries)
        for side in ("left", "right"):
            got = taeda.searchsorted(b, x, right=side == "right").numpy()
            np.testing.assert_array_equal(got, np.searchsorted(boundaries, a, side))
        np.testing.assert_array_equal(taeda.isin(x, b).numpy(), np.isin(a, boundaries))
        got = taeda.isin(x, b, invert=True).numpy()
        np.testing.assert_array_equal(got, np.isin(a, boundaries, invert=True))


def test_searches_with_nan() -> None:
    nan = float("nan")
    x, b = taeda.tensor([nan, 1.0, 9.0]), taeda.tensor([0.0, 1.0, nan, nan])
    assert taeda.searchsorted(b, x).tolist() == [2, 1, 2]
    assert taeda.searchsorted(b, x, right=True).tolist() == [4, 2, 2]
    assert taeda.isin(x, b).tolist() == [False, True, False]  # NaN equals nothing


@pytest.mark.parametrize("n", [1, 63, 64, 65, 32768, 100_001])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.9, 1.0])
def test_masks(n: int, share: float) -> None:
    mask = RANDOM.random(n) < share
    for dtype in ("float32", "int8", "float64", "int16"):
        a = RANDOM.integers(-99, 99, n).astype(dtype)
        got = taeda.from_numpy(a)[taeda.from_numpy(mask)]
        np.testing.assert_array_equal(got.numpy(), a[mask])
    m = taeda.from_numpy(mask)
    np.testing.assert_array_equal(m.nonzero().numpy()[:, 0], np.flatnonzero(mask))
    if n % 3 == 0 or n == 64:
        shape = (n // 3, 3) if n % 3 == 0 else (4, 2, 8)
        got = m.reshape(*shape).nonzero().numpy()
        np.testing.assert_array_equal(got, np.argwhere(mask.reshape(shape)))
    runs = np.repeat(RANDOM.integers(0, 5, n), RANDOM.integers(1, 60, n))[:n]
    starts = np.flatnonzero(np.concatenate([[True], runs[1:] != runs[:-1]]))
    got = taeda.from_numpy(runs).unique_consecutive()
    np.testing.assert_array_equal(got.numpy(), runs[starts])


def test_mask_over_all_of_a_strided_tensor() -> None:
    a = RANDOM.standard_normal((50, 70))
    mask = RANDOM.random((70, 50)) < 0.4
    got = taeda.from_numpy(a).t()[taeda.from_numpy(mask)]
    np.testing.assert_array_equal(got.numpy(), a.T[mask])
    x = taeda.from_numpy(a).requires_grad_()
    x.t()[taeda.from_numpy(mask)].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), mask.T.astype(float))


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex128", "int16"])
def test_repeated_elements_and_rolls(dtype: str) -> None:
    a = RANDOM.integers(-99, 99, (40, 601)).astype(dtype)
    x = taeda.from_numpy(a)
    for times in (2, 4, 31, 33):
        np.testing.assert_array_equal(x.repeat_interleave(times, 1).numpy(), a.repeat(times, 1))
        np.testing.assert_array_equal(
            x.t().repeat_interleave(times, 1).numpy(), a.T.repeat(times, 1)
        )
    for shift in (1, 3, -5, 600):
        np.testing.assert_array_equal(x.roll(shift, 1).numpy(), np.roll(a, shift, 1))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_unique_along_a_dimension(dim: int) -> None:
    x = np.random.default_rng(5).integers(0, 2, (4, 3, 5))
    x[:, :, 3] = x[:, :, 1]
    found = taeda.unique(taeda.tensor(x), dim=dim, return_inverse=True, return_counts=True)
    expected = np.unique(x, axis=dim, return_inverse=True, return_counts=True)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs.reshape(mine.shape))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("name", ["unique", "unique_consecutive"])
@pytest.mark.parametrize("size", [1, 5, 16, 17, 60, 400])
def test_rows_with_nan_come_in_the_order_of_pytorch(size: int, name: str, dim: int) -> None:
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(size)
    for holes in (0.05, 0.4):
        x = generator.integers(0, 3, (size, 2)).astype(np.float32)
        x[generator.random((size, 2)) < holes] = np.nan
        mine, theirs = (
            getattr(lib, name)(lib.from_numpy(x), dim=dim, return_inverse=True, return_counts=True)
            for lib in (taeda, torch)
        )
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one.numpy(), other.numpy())
            assert one.stride() == other.stride()


def test_unique_of_nothing() -> None:
    assert taeda.unique(taeda.zeros(0, 3), dim=0).shape == (0, 3)
    with pytest.raises(RuntimeError, match="aren't selected"):
        taeda.unique(taeda.zeros(0, 3), dim=1)
    with pytest.raises(RuntimeError, match="more than one"):
        taeda.unique(taeda.zeros(0, 0), dim=0)
    with pytest.raises(IndexError, match="no dimensions"):
        taeda.unique(taeda.tensor(3), dim=0)


def test_rolls_of_one_number() -> None:
    assert taeda.tensor(3).roll(2).item() == 3
    with pytest.raises(IndexError, match="no dimensions"):
        taeda.tensor(3).roll(2, 0)
