"""Kernels with a faster way for some layouts, dtypes or sizes: every way against NumPy."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taeda as torch

RANDOM = np.random.default_rng(5)
DTYPES = [np.int8, np.int16, np.int32, np.int64, np.float32, np.float64, np.complex128]


def numbers(dtype: type, *shape: int) -> np.ndarray:
    return (RANDOM.standard_normal(shape) * 50).astype(dtype)


# Views of a 3-dimensional array: dense, stepped, backwards, and with dimensions in another order.
LAYOUTS = {
    "dense": lambda a: a,
    "every second": lambda a: a[..., ::2],
    "every third": lambda a: a[..., ::3],
    "rows": lambda a: a[:, ::2],
    "transposed": lambda a: a.swapaxes(1, 2),
    "outer transposed": lambda a: a.swapaxes(0, 2),
    "repeated": lambda a: np.broadcast_to(a[..., :1], a.shape),
}


def of_layout(layout: str, x: torch.Tensor) -> torch.Tensor:
    if layout == "transposed":
        return x.transpose(1, 2)
    if layout == "outer transposed":
        return x.transpose(0, 2)
    if layout == "repeated":
        return x[..., :1].expand(x.shape)
    return LAYOUTS[layout](x)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_copies_of_views(layout: str, dtype: type) -> None:
    for shape in ((2, 37, 41), (3, 64, 128), (1, 5, 3), (2, 0, 4)):
        a = numbers(dtype, *shape)
        want, got = LAYOUTS[layout](a), of_layout(layout, torch.from_numpy(a))
        np.testing.assert_array_equal(got.contiguous().numpy(), want)
        np.testing.assert_array_equal((got + 1).numpy(), want + dtype(1))
        for dims in ((2,), (1,), (0, 2)):
            np.testing.assert_array_equal(got.flip(dims).numpy(), np.flip(want, dims))


def test_no_byte_outside_a_stepped_view_is_read() -> None:
    # The last element read is the last of the array: one beyond would be outside its memory.
    for n in range(1, 40):
        a = numbers(np.float32, 2 * n - 1)
        np.testing.assert_array_equal(torch.from_numpy(a)[::2].clone().numpy(), a[::2])
        np.testing.assert_array_equal(torch.from_numpy(a).flip(0).numpy(), a[::-1])


@pytest.mark.parametrize("shape", [(3, 1), (40, 700), (5, 4097), (2000, 33)])
def test_an_element_for_each_row(shape: tuple[int, int]) -> None:
    a, column = numbers(np.float32, *shape), numbers(np.float32, shape[0], 1)
    got = torch.from_numpy(a) * torch.from_numpy(column)
    np.testing.assert_array_equal(got.numpy(), a * column)


@pytest.mark.parametrize("dtype", [np.int16, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_and_scatter(dtype: type, dim: int) -> None:
    for shape, layout in itertools.product(
        ((7, 9, 11), (2, 300, 40)), ("dense", "transposed", "every second", "outer transposed")
    ):
        a = LAYOUTS[layout](numbers(dtype, *shape))
        x = torch.from_numpy(a)
        size = list(a.shape)
        size[dim] = 13
        index = RANDOM.integers(0, a.shape[dim], size)
        for i in (index, np.asfortranarray(index)):
            got = torch.gather(x, dim, torch.from_numpy(i))
            np.testing.assert_array_equal(got.numpy(), np.take_along_axis(a, i, dim))
        unique = np.argsort(RANDOM.random(a.shape), dim)
        values = numbers(dtype, *a.shape)
        want = a.copy()
        np.put_along_axis(want, unique, values, dim)
        got = x.clone().scatter_(dim, torch.from_numpy(unique), torch.from_numpy(values))
        np.testing.assert_array_equal(got.numpy(), want)
        want = a.astype(np.float64)
        indices = list(np.ogrid[tuple(slice(n) for n in index.shape)])
        indices[dim] = index
        source = numbers(dtype, *index.shape)
        np.add.at(want, tuple(indices), source.astype(np.float64))
        got = x.scatter_add(dim, torch.from_numpy(index), torch.from_numpy(source))
        if dtype is not np.int16:  # which wraps
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-3)


def test_one_bad_index_among_many() -> None:
    for at, bad in ((0, 100), (70_000, -1), (99_999, 2**40)):
        index = torch.zeros(100_000, dtype=torch.int64)
        index[at] = bad
        for i in (index, index.view(1000, 100).t().reshape(1000, 100).view(-1)):
            with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds"):
                torch.zeros(100).gather(0, i)
        x = torch.zeros(100)
        with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds"):
            x.scatter_add_(0, index, torch.ones(100_000))


@pytest.mark.parametrize("width", [1, 3, 256, 700])
def test_index_add_and_copy(width: int) -> None:
    for dtype in (np.float32, np.float64, np.int64, np.int8):
        a, b = numbers(dtype, 50, width), numbers(dtype, 50, width)
        i = RANDOM.permutation(50)
        x, y, j = torch.from_numpy(a), torch.from_numpy(b), torch.from_numpy(i)
        want = a.copy()
        want[i] += b
        np.testing.assert_array_equal(x.index_add(0, j, y).numpy(), want)
        np.testing.assert_array_equal(
            x.t().contiguous().t().index_add(0, j, y.t().contiguous().t()).numpy(), want
        )
        want[i] = b
        np.testing.assert_array_equal(x.index_copy(0, j, y).numpy(), want)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("size", [1, 2, 8, 100, 1000])
def test_topk(size: int, dtype: type) -> None:
    a = RANDOM.integers(-20, 20, (6, size)).astype(dtype)  # with ties
    for k in {0, 1, 2, min(5, size), size // 2, min(17, size), size} & set(range(size + 1)):
        for largest, dim in itertools.product((True, False), (0, 1)):
            x = torch.from_numpy(a if dim else np.ascontiguousarray(a.T))
            got = x.topk(k, dim, largest=largest)
            order = np.argsort(-a.astype(np.float64) if largest else a, axis=1, kind="stable")[
                :, :k
            ]
            want = np.take_along_axis(a, order, 1)
            np.testing.assert_array_equal(got.values.numpy(), want if dim else want.T)
            np.testing.assert_array_equal(got.indices.numpy(), order if dim else order.T)


def test_topk_takes_nan_for_the_largest() -> None:
    nan = float("nan")
    x = torch.tensor([[1.0, nan, -0.0, float("inf")], [nan, nan, 0.0, -1.0]])
    assert x.topk(2).indices.tolist() == [[1, 3], [0, 1]]
    assert x.topk(2, largest=False).indices.tolist() == [[2, 0], [3, 2]]


@pytest.mark.parametrize("span", [1, 7, 300, 2**31, 2**40, 2**63 - 1])
def test_sorting_integers_of_any_range(span: int) -> None:
    for n in (600, 5000):
        a = RANDOM.integers(-span, span, n, endpoint=True)
        for descending in (False, True):
            got = torch.sort(torch.from_numpy(a), descending=descending, stable=True)
            key = -a.astype(object) if descending else a.astype(object)
            want = np.argsort(key, kind="stable")
            np.testing.assert_array_equal(got.indices.numpy(), want)
            np.testing.assert_array_equal(got.values.numpy(), a[want])
    low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    a = np.array([high, low, 0, high, -1] * 200)
    np.testing.assert_array_equal(torch.sort(torch.from_numpy(a)).values.numpy(), np.sort(a))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cumulative_sums_and_products(dtype: type, dim: int) -> None:
    for shape, layout in itertools.product(
        ((3, 50, 7), (40, 2, 600), (1, 1, 5), (0, 2, 3)), ("dense", "transposed", "every second")
    ):
        a = LAYOUTS[layout](numbers(dtype, *shape) / 50 if dtype is not np.int32 else
                            numbers(dtype, *shape)).astype(dtype)  # fmt: skip
        x = of_layout(layout, torch.from_numpy(numbers(dtype, *shape)))
        x.copy_(torch.from_numpy(np.ascontiguousarray(a)))
        exact = dtype in (np.int32, np.int64)
        wide = np.int64 if exact else np.complex128 if dtype is np.complex128 else np.float64
        want = np.cumsum(a.astype(wide), dim)
        np.testing.assert_allclose(torch.cumsum(x, dim).numpy(), want, rtol=1e-6, atol=1e-5)
        small = torch.from_numpy(np.ascontiguousarray(a)).clone().mul_(0 if exact else 0.01).add_(1)
        want = np.cumprod(small.numpy().astype(wide), dim)
        np.testing.assert_allclose(torch.cumprod(small, dim).numpy(), want, rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", ["cummax", "cummin"])
def test_cumulative_extremes(name: str, dtype: type, dim: int) -> None:
    for shape, layout in itertools.product(
        ((3, 50, 7), (4, 2, 1300), (1, 1, 5), (0, 2, 3)), ("dense", "transposed", "every second")
    ):
        base = RANDOM.integers(-9, 9, shape).astype(dtype)
        if dtype in (np.float32, np.float64):
            base[RANDOM.random(shape) < 0.02] = np.nan
            base[RANDOM.random(shape) < 0.01] = np.inf
        a, x = LAYOUTS[layout](base), of_layout(layout, torch.from_numpy(base))
        values, indices = getattr(torch, name)(x, dim)
        best = (np.maximum if name == "cummax" else np.minimum).accumulate(a, dim)
        np.testing.assert_array_equal(values.numpy(), best)
        taken = (a == best) | (np.isnan(a) if dtype not in (np.int32, np.int64) else False)
        place = np.arange(a.shape[dim]).reshape([-1 if d == dim else 1 for d in range(3)])
        last = np.maximum.accumulate(np.where(taken, place, -1), dim)
        np.testing.assert_array_equal(indices.numpy(), last)


@pytest.mark.parametrize("layout", ["dense", "transposed", "every second"])
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.uint8, np.int64, np.float32, np.float64])
def test_hashes_of_tensors(dtype: type, layout: str) -> None:
    base = (RANDOM.standard_normal((5, 70, 300)) * 100).astype(dtype)
    a, x = LAYOUTS[layout](base), of_layout(layout, torch.from_numpy(base))
    wide = np.ascontiguousarray(a.astype(np.float64 if a.dtype.kind == "f" else np.int64))
    wide = wide.view(np.uint64)
    for dims in (None, (0,), (1,), (2,), (0, 2), (0, 1, 2)):
        want = np.bitwise_xor.reduce(wide, dims)
        np.testing.assert_array_equal(torch.hash_tensor(x, dims or ()).numpy(), want)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (200, 131), (1000, 1000), (70, 4100), (5000, 3)])
def test_sums_of_floats(shape: tuple[int, int]) -> None:
    a = RANDOM.standard_normal(shape).astype(np.float32)
    x, wide = torch.from_numpy(a), a.astype(np.float64)
    size = np.abs(wide)
    # In double beyond a few additions: the error does not grow with the number of elements.
    assert abs(x.sum().item() - wide.sum()) <= 2e-7 * size.sum() + 1e-7 * abs(wide.sum())
    for dim in (0, 1):
        error = np.abs(x.sum(dim).numpy() - wide.sum(dim))
        assert (error <= 1e-6 * size.sum(dim)).all()
    np.testing.assert_allclose(x[::2].sum(0).numpy(), wide[::2].sum(0), atol=1e-3)
    a[0, 0] = np.nan
    assert np.isnan(torch.from_numpy(a).sum().item())
    assert np.isnan(torch.from_numpy(a).sum(0).numpy()).sum() == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int16, np.int32, np.int64])
def test_integer_division(dtype: type) -> None:
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, info.max, info.max - 1, 0, 1, 2, 3, 7, 100]
    if info.min < 0:
        edges += [-1, -2, -3, -7, -100]
    x = np.array(edges, dtype)[:, None]
    y = np.array([v for v in edges if v], dtype)[None]
    with np.errstate(over="ignore"):
        want_quotient, want_rest = x // y, x % y
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    np.testing.assert_array_equal((a // b).numpy(), want_quotient)
    np.testing.assert_array_equal((a % b).numpy(), want_rest)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        a % torch.zeros(1, dtype=a.dtype)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        a // torch.zeros(1, dtype=a.dtype)


def test_searchsorted_in_rows_of_every_length() -> None:
    for m, right in itertools.product((0, 1, 2, 3, 7, 8, 100), (False, True)):
        edges = np.sort(RANDOM.integers(0, 20, m)).astype(np.float64)
        values = np.concatenate([RANDOM.integers(-1, 22, 50), edges, [np.inf, -np.inf]])
        got = torch.searchsorted(torch.from_numpy(edges), torch.from_numpy(values), right=right)
        want = np.searchsorted(edges, values, "right" if right else "left")
        np.testing.assert_array_equal(got.numpy(), want)


def test_bincount_of_nothing_and_of_bad_values() -> None:
    assert torch.bincount(torch.zeros(0, dtype=torch.int64)).tolist() == []
    assert torch.bincount(torch.zeros(0, dtype=torch.int64), minlength=3).tolist() == [0, 0, 0]
    with pytest.raises(RuntimeError, match="non-negative"):
        torch.bincount(torch.tensor([1, -1]))


def test_the_number_of_threads_changes_nothing() -> None:
    x = torch.randn(700, 900)
    i = torch.randint(0, 700, (700, 900))
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            results.append(
                [
                    x.sum(),
                    x.sum(0),
                    x.t().contiguous(),
                    x.cumsum(0),
                    x.gather(0, i),
                    x.scatter_add(0, i, x),
                    x.index_add(0, i[0][:700], x),
                    x.topk(4).values,
                ]
            )
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert torch.equal(a, b)


@pytest.mark.skipif("TAEDA_CPU" in os.environ, reason="runs itself")
def test_the_baseline_instruction_set_gives_the_same() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "TAEDA_CPU": "baseline"}
    done = subprocess.run(
        command, env=environment, cwd=Path(__file__).parents[2], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-2000:]


@pytest.mark.parametrize("dtype", DTYPES)
def test_stack_along_the_last_dimension(dtype: type) -> None:
    for count, n in itertools.product((1, 2, 3, 4, 5, 20), (0, 1, 37, 3000)):
        arrays = [numbers(dtype, 2, n) for _ in range(count)]
        got = torch.stack([torch.from_numpy(a) for a in arrays], -1)
        np.testing.assert_array_equal(got.numpy(), np.stack(arrays, -1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_repeated_side_by_side(dtype: type) -> None:
    a = numbers(dtype, 3, 2, 700)
    for times, layout in itertools.product((2, 3, 4, 7, 8, 9, 31), LAYOUTS):
        got = of_layout(layout, torch.from_numpy(a)).repeat_interleave(times, -1)
        np.testing.assert_array_equal(got.numpy(), np.repeat(LAYOUTS[layout](a), times, -1))


def test_results_past_the_cache() -> None:
    threads = torch.get_num_threads()
    a = numbers(np.float32, 2100, 2000)
    x = torch.from_numpy(a)
    indices = RANDOM.integers(0, 2000, (2100, 2003))
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            gathered = x.gather(1, torch.from_numpy(indices))
            np.testing.assert_array_equal(gathered.numpy(), np.take_along_axis(a, indices, 1))
            stacked, repeated = torch.stack([x, x + 1, x], -1), x.repeat_interleave(3, 1)
            np.testing.assert_array_equal(stacked.numpy(), np.stack([a, a + 1, a], -1))
            np.testing.assert_array_equal(repeated.numpy(), np.repeat(a, 3, 1))
            for diagonal in (-700, 0, 3):
                np.testing.assert_array_equal(x.tril(diagonal).numpy(), np.tril(a, diagonal))
                np.testing.assert_array_equal(x.triu(diagonal).numpy(), np.triu(a, diagonal))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.bool_])
def test_count_nonzero(dtype: type) -> None:
    a = (RANDOM.standard_normal((5, 777)) * 2).astype(np.int32).astype(dtype)
    if dtype in (np.float32, np.float64):
        a[1, :3] = np.nan, -0.0, np.inf
    for dim in (None, 0, 1):
        got = torch.count_nonzero(torch.from_numpy(a), dim)
        np.testing.assert_array_equal(got.numpy(), np.count_nonzero(a, dim))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_logsumexp(dtype: torch.dtype) -> None:
    x = torch.randn(7, 300, 5).to(dtype) * 20
    x[1, 2:9] = float("-inf")
    x[2, :, 1], x[3, 4, 0], x[4, 5, 2] = float("-inf"), float("inf"), float("nan")
    for dim in (0, 1, 2):
        with np.errstate(invalid="ignore"):
            want = np.logaddexp.reduce(x.double().numpy(), dim)
        close = 0.02 if dtype == torch.bfloat16 else 1e-5 if dtype == torch.float32 else 1e-14
        for keepdim in (False, True):
            got = x.logsumexp(dim, keepdim=keepdim).double().numpy()
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=close, atol=close)


@pytest.mark.parametrize("shape", [(40, 600), (600, 40)])
@pytest.mark.parametrize("dim", [0, 1])
def test_scatter_writes_nothing_outside(shape: tuple[int, int], dim: int) -> None:
    for bad in (-1, shape[dim], 1 << 40):
        memory = torch.zeros(shape[0] + 2, shape[1])
        x, index = memory[1:-1], torch.zeros(shape, dtype=torch.int64)
        index[shape[0] // 2, shape[1] // 2] = bad
        for call in (x.scatter_, x.scatter_add_):
            with pytest.raises(RuntimeError, match=f"index {bad} is out of bounds"):
                call(dim, index, torch.ones(shape))
        assert not memory[0].any()
        assert not memory[-1].any()


def test_scatter_by_an_index_in_the_same_memory() -> None:
    x = torch.arange(600)
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        x.scatter_(0, x, torch.full((600,), 1 << 40))
    assert x.tolist() == list(range(600))


def norm_in_double(x: np.ndarray, w: np.ndarray, gy: np.ndarray) -> list[np.ndarray]:
    """layer_norm without a bias and its gradients of x, w and the bias."""
    rstd = 1 / np.sqrt(x.var(1, keepdims=True, dtype=np.float64) + 1e-5)
    u = (x - x.mean(1, keepdims=True, dtype=np.float64)) * rstd
    g = gy.astype(np.float64) * w
    gx = rstd * (g - g.mean(1, keepdims=True) - u * (g * u).mean(1, keepdims=True))
    return [u * w, gx, (gy * u).sum(0), gy.sum(0, dtype=np.float64)]


# The last is written past the cache.
@pytest.mark.parametrize("shape", [(5, 1), (3, 7), (9, 63), (40, 1000), (3, 50_001), (2100, 2050)])
def test_layer_norm(shape: tuple[int, int]) -> None:
    x, gy = (RANDOM.standard_normal(shape).astype(np.float32) for _ in range(2))
    x[-1] += 300
    w = RANDOM.standard_normal(shape[1]).astype(np.float32)
    want = norm_in_double(x, w, gy) if shape[1] > 1 else [0 * x, 0 * x, 0 * w, gy.sum(0)]
    threads, first = torch.get_num_threads(), None
    inputs = [torch.from_numpy(a).requires_grad_() for a in (x, w, 0 * w)]
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            y = torch.nn.functional.layer_norm(inputs[0], shape[1:], *inputs[1:])
            grads = torch.autograd.grad(y, inputs, torch.from_numpy(gy))
            got = [a.detach().numpy() for a in (y, *grads)]
            first = first or got
            for a, b, c in zip(got, want, first, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-4)
                assert a.tobytes() == c.tobytes()
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("size", [2048, 4096, 100_000])
def test_variance_where_the_first_elements_are_unlike_the_rest(size: int) -> None:
    for jump, spread in ((1000.0, 1.0), (1.0, 0.0), (-1e4, 1.0)):
        x = RANDOM.standard_normal((4, size)).astype(np.float32)
        x[:, :70] = x[:, :70] * spread + jump
        got = torch.from_numpy(x).var(1).numpy()
        np.testing.assert_allclose(got, x.var(1, ddof=1, dtype=np.float64), rtol=1e-6)


def test_rows_past_the_cache() -> None:
    a, ga = (RANDOM.standard_normal((2100, 2050)).astype(np.float32) for _ in range(2))
    a[0, 1000] = np.nan
    a[1, 7] = np.inf
    with np.errstate(invalid="ignore"):
        e = np.exp(a.astype(np.float64) - a.max(1, keepdims=True))
    e[1] = np.nan
    total = e.sum(1, keepdims=True)
    with np.errstate(invalid="ignore"):
        logs = a - a.max(1, keepdims=True) - np.log(total)
    dot = (ga * e / total).sum(1, keepdims=True)
    want = [
        (torch.softmax, e / total, e / total * (ga - dot)),
        (torch.log_softmax, logs, ga - e / total * ga.sum(1, keepdims=True)),
    ]
    for call, value, gradient in want:
        x = torch.from_numpy(a).requires_grad_()
        y = call(x, 1)
        np.testing.assert_allclose(y.detach().numpy(), value, rtol=2e-5, atol=1e-6)
        gx = torch.autograd.grad(y, x, torch.from_numpy(ga))[0].numpy()
        np.testing.assert_allclose(gx[2:], gradient[2:], rtol=2e-4, atol=2e-4)


def test_batch_norm_past_the_cache() -> None:
    threads, shape, dims = torch.get_num_threads(), (16, 50, 61, 61), (0, 2, 3)
    a, ga = (RANDOM.standard_normal(shape).astype(np.float32) for _ in range(2))
    rstd = 1 / np.sqrt(a.var(dims, keepdims=True, dtype=np.float64) + 1e-5)
    u = (a - a.mean(dims, keepdims=True, dtype=np.float64)) * rstd
    ones = torch.ones(50)
    inner = ga - ga.mean(dims, keepdims=True) - u * (ga * u).mean(dims, keepdims=True)
    try:
        for n in (1, 2):
            torch.set_num_threads(n)
            x = torch.from_numpy(a).requires_grad_()
            y = torch.nn.functional.batch_norm(x, None, None, ones, 0 * ones, training=True)
            np.testing.assert_allclose(y.detach().numpy(), u, rtol=1e-5, atol=1e-5)
            gx = torch.autograd.grad(y, x, torch.from_numpy(ga))[0].numpy()
            np.testing.assert_allclose(gx, rstd * inner, rtol=1e-4, atol=1e-5)
    finally:
        torch.set_num_threads(threads)
