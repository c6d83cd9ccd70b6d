"""Kernels that have no definition in the table, against NumPy: copies, gathering and scattering,
joining, padding, products, the parts of a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import taeda

RANDOM = np.random.default_rng(0)
DTYPES = ["bool", "uint8", "int32", "int64", "float16", "float32", "float64", "complex64"]


def array(*shape: int, dtype: str = "float64") -> np.ndarray:
    if dtype.startswith("complex"):
        return (RANDOM.standard_normal(shape) + 1j * RANDOM.standard_normal(shape)).astype(dtype)
    return RANDOM.integers(0, 9, shape).astype(dtype)


def layouts(a: np.ndarray) -> list[taeda.Tensor]:
    """Tensors of the array's values: dense, transposed, every second of a larger one."""
    dense = taeda.from_numpy(a.copy())
    transposed = taeda.from_numpy(np.asfortranarray(a)) if a.ndim > 1 else dense
    wide = taeda.stack([dense, dense], -1)[..., 0]
    return [dense, transposed, wide]


def equal(got: taeda.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(got.numpy(), expected, strict=True)


@pytest.mark.parametrize("dtype", DTYPES)
def test_conversions_and_copies(dtype: str) -> None:
    for source in DTYPES:
        if source.startswith("complex") and not dtype.startswith("complex"):
            continue
        a = array(3, 5, dtype=source)
        for x in layouts(a):
            equal(x.to(getattr(taeda, dtype)), a.astype(dtype))
            y = taeda.zeros(2, 3, 5, dtype=getattr(taeda, dtype))
            equal(y.copy_(x), np.broadcast_to(a, (2, 3, 5)).astype(dtype))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather(dtype: str, dim: int) -> None:
    a = array(4, 5, 6, dtype=dtype)
    index = RANDOM.integers(0, a.shape[dim], (3, 4, 5))
    expected = np.take_along_axis(
        a[tuple(slice(None) if d == dim else slice(n) for d, n in enumerate((3, 4, 5)))], index, dim
    )
    for x in layouts(a):
        equal(x.gather(dim, taeda.from_numpy(index)), expected)


def scattered(a: np.ndarray, dim: int, index: np.ndarray, write: Callable[..., Any]) -> np.ndarray:
    """`write(old, place)` for every element of the index, in row-major order."""
    out = a.copy()
    for place in np.ndindex(*index.shape):
        at = (*place[:dim], index[place], *place[dim + 1 :])
        out[at] = write(out[at], place)
    return out


WRITES: dict[str, Callable[..., Any]] = {
    "src": lambda old, new: new,
    "add": lambda old, new: old + new,
    "multiply": lambda old, new: old * new,
}


@pytest.mark.parametrize("dtype", ["int64", "float64", "complex128"])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", WRITES)
def test_scatter(kind: str, dim: int, dtype: str) -> None:
    a, src = array(5, 6, dtype=dtype), array(4, 5, dtype=dtype)
    index = RANDOM.integers(0, a.shape[dim], (4, 3))
    write = WRITES[kind]
    by_src = scattered(a, dim, index, lambda old, place: write(old, src[place]))
    by_value = scattered(a, dim, index, lambda old, place: write(old, 3))
    how = {} if kind == "src" else {"reduce": kind}
    for x in layouts(a):
        at, s = taeda.from_numpy(index), taeda.from_numpy(src)
        np.testing.assert_allclose(x.clone().scatter_(dim, at, s, **how).numpy(), by_src)
        np.testing.assert_allclose(x.clone().scatter_(dim, at, 3, **how).numpy(), by_value)
        if kind == "add":
            np.testing.assert_allclose(x.clone().scatter_add_(dim, at, s).numpy(), by_src)


REDUCTIONS = {"sum": np.sum, "prod": np.prod, "mean": np.mean, "amax": np.max, "amin": np.min}


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_scatter_reduce(reduce: str, include_self: bool) -> None:
    a, src = RANDOM.standard_normal((5, 4)), RANDOM.standard_normal((6, 4))
    index = RANDOM.integers(0, 4, (6, 4))
    expected = a.copy()
    for i, j in np.ndindex(5, 4):
        values = [*([a[i, j]] if include_self else []), *src[index[:, j] == i, j]]
        expected[i, j] = REDUCTIONS[reduce](values) if values else a[i, j]
    for x in layouts(a):
        given = 0, taeda.from_numpy(index), taeda.from_numpy(src), reduce
        got = x.scatter_reduce(*given, include_self=include_self)
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_joining(dtype: str, dim: int) -> None:
    parts = [array(3, 4, dtype=dtype) for _ in range(3)]
    mixed = [layouts(a)[k] for k, a in enumerate(parts)]
    equal(taeda.cat(mixed, dim), np.concatenate(parts, dim))
    equal(taeda.stack(mixed, dim), np.stack(parts, dim))
    equal(taeda.cat([mixed[0], mixed[1][:0]], 0), parts[0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_constant_padding(dtype: str) -> None:
    a = array(2, 3, 4, dtype=dtype)
    for x in layouts(a):
        equal(
            taeda.constant_pad_nd(x, (1, 2), 1),
            np.pad(a, [(0, 0), (0, 0), (1, 2)], constant_values=1),
        )
        wide = np.pad(a, [(2, 0), (0, 1), (3, 0)])
        equal(taeda.constant_pad_nd(x, (3, 0, 0, 1, 2, 0)), wide)
        equal(
            taeda.constant_pad_nd(x, (-1, 1, 1, -2)), np.pad(a[:, :1, 1:], [(0, 0), (1, 0), (0, 1)])
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_products(dtype: str) -> None:
    a = array(3, 4, 5, dtype=dtype)
    for x in layouts(a):
        for dims in (None, 0, 1, 2, (0, 2)):
            got = taeda.prod(x) if dims is None else taeda.ops.aten.prod.dim_int(x, dims)
            wide = a.astype(np.int64 if a.dtype.kind in "bui" else a.dtype)
            expected = wide.prod(axis=dims)
            if a.dtype.kind in "fc":
                np.testing.assert_allclose(
                    got.numpy(), expected, rtol=2e-2 if dtype == "float16" else 1e-5
                )
            else:
                assert got.dtype == taeda.int64
                np.testing.assert_array_equal(got.numpy(), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_mantissa_and_exponent(dtype: str) -> None:
    limits = np.finfo(dtype)
    values = [0.0, -0.0, 1.0, -0.75, 3.1, limits.max, limits.tiny, limits.smallest_subnormal, 1e-3]
    a = np.array(values, dtype=dtype)
    mantissa, exponent = taeda.frexp(taeda.from_numpy(a))
    expected = np.frexp(a)
    equal(mantissa, expected[0])
    equal(exponent, expected[1])
    for x in (np.inf, -np.inf, np.nan):
        mantissa, exponent = taeda.frexp(taeda.tensor([x], dtype=getattr(taeda, dtype)))
        np.testing.assert_array_equal(mantissa.numpy(), np.array([x], dtype=dtype))
        assert exponent.item() == 0
