"""Many elements for one: scatters, accumulation, and gradients of tables, by sorted indices."""

from functools import partial

import numpy as np
import pytest
from tests.device.simulated.by_kernels import NUMBERS, REAL, TOLERANCE, values

import taeda
from taeda import _C
from taeda.nn import functional as F

REDUCE = {"sum": np.add, "prod": np.multiply, "amin": np.minimum, "amax": np.maximum}


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def exact(x):
    """In the widest type of its kind."""
    if x.dtype.is_complex:
        return x.to(taeda.complex128).numpy()
    if x.dtype == taeda.bool:
        return x.numpy()
    return (x.double() if x.dtype.is_floating_point else x.long()).numpy()


def close(found, expected, dtype, length):
    """Sums of `length` numbers are rounded in the type that they are added in."""
    if dtype == "bool" or "int" in dtype:
        integer = getattr(np, "bool_" if dtype == "bool" else dtype)
        np.testing.assert_array_equal(exact(found), expected.astype(integer))
        return
    rtol, atol = TOLERANCE[dtype]
    wide = "64" if dtype in ("float64", "complex128") else "32"
    more = length * (1e-15 if wide == "64" else 1e-7)
    np.testing.assert_allclose(exact(found), expected, rtol=rtol, atol=atol + more, err_msg=dtype)


# One row of a few indices, a short run and several long ones; rows, and elements each of its own.
def hot(count, below, seed=0):
    random = np.random.default_rng(seed)
    drawn = np.where(random.random(count) < 0.6, 3 % below, random.integers(0, below, count))
    drawn[-5:] = below - 1
    return taeda.tensor(drawn)


@pytest.mark.parametrize("reduce", REDUCE)
def test_scatter_reduce_of_few_long_lines(reduce, bits):
    n, sizes = 1500, (2, 40)
    for dtype in REAL:
        x, src = values(dtype, sizes), values(dtype, (2, n), 1)
        if reduce == "prod" and dtype.startswith(("float", "bfloat")):
            src = (1 + src / 100).to(src.dtype)
        index = taeda.stack([hot(n, 40), hot(n, 40, 1)])
        args = [t.to("cuda") for t in (x, index, src)]

        def call(args=args):
            return args[0].scatter_reduce(1, *args[1:], reduce)

        races = reduce == "sum" and dtype in ("float32", "float64")
        found = call().cpu() if races else bits(call)
        expected = exact(x).copy()
        with np.errstate(over="ignore"):
            REDUCE[reduce].at(expected, (np.arange(2)[:, None], index.numpy()), exact(src))
        if reduce == "prod" and dtype in ("int8", "int16", "int32", "uint8"):
            expected = expected.astype(np.uint64).astype(getattr(np, dtype))
        if reduce == "prod" and dtype in ("float16", "bfloat16"):
            rtol = 2e-2
            np.testing.assert_allclose(exact(found), expected, rtol=rtol, err_msg=dtype)
            continue
        close(found, expected, dtype, n)


def test_scatter_reduce_keeps_nan():
    x, src = values("float32", (1, 3)), values("float32", (1, 900), 1)
    src[0, 700] = np.nan
    index = hot(900, 3)[None]
    index[0, 700] = 1
    for reduce in ("amin", "amax"):
        found = x.cuda().scatter_reduce(1, index.cuda(), src.cuda(), reduce).cpu()
        assert found.isnan().tolist() == [[False, True, False]]


@pytest.mark.parametrize("count", [65, 256, 257, 1100])
def test_index_add_and_scatter_add_of_all_types(count, bits):
    index = hot(count, 7)
    i = index.cuda()
    each = i[None, :, None].expand(3, count, 2)
    calls = {
        "index_add": lambda a, s: a.index_add(1, i, s),
        "repeated": lambda a, s: a.scatter_add(1, each, s),
        "scattered": lambda a, s: a.scatter_add(1, each.contiguous(), s),
        "put": lambda a, s: (
            a.transpose(0, 1).index_put((i,), s.transpose(0, 1), True).transpose(0, 1)
        ),
    }
    for dtype in NUMBERS:
        x, source = values(dtype, (3, 7, 2)), values(dtype, (3, count, 2), 1)
        expected = exact(x).copy()
        np.add.at(expected, (slice(None), index.numpy()), exact(source))
        a, s = x.cuda(), source.cuda()
        for name, call in calls.items():
            races = name != "put" and dtype in ("float32", "float64", "complex64", "complex128")
            found = call(a, s).cpu() if races else bits(partial(call, a, s))
            close(found, expected, dtype, count)


def test_additions_are_in_a_fixed_order_under_deterministic_algorithms(deterministic, bits):
    x, index, source = values("float32", (40,)), hot(3000, 40), values("float32", (3000,), 1)
    expected = exact(x).copy()
    np.add.at(expected, index.numpy(), exact(source))
    a, i, s = x.cuda(), index.cuda(), source.cuda()
    close(bits(lambda: a.index_add(0, i, s)), expected, "float32", 3000)
    close(bits(lambda: a.scatter_add(0, i, s)), expected, "float32", 3000)


def test_the_last_of_several_writes_counts_under_deterministic_algorithms(deterministic, bits):
    index = hot(700, 30)
    for dtype in NUMBERS:
        x, source = values(dtype, (2, 30, 3)), values(dtype, (2, 700, 3), 1)
        rows, expected = exact(x).copy(), exact(x).copy()
        for k, at in enumerate(index.tolist()):
            rows[:, at] = exact(source)[:, k]
        every = np.stack([np.roll(index.numpy(), k) for k in range(6)], 1).reshape(1, 700, 6)
        every = np.concatenate([every[..., :3], every[..., 3:]])
        for b in range(2):
            for k in range(700):
                for c in range(3):
                    expected[b, every[b, k, c], c] = exact(source)[b, k, c]
        a, i, s, e = x.cuda(), index.cuda(), source.cuda(), taeda.tensor(every).cuda()
        each = i[None, :, None].expand(2, 700, 3)
        np.testing.assert_array_equal(exact(bits(partial(a.index_copy, 1, i, s))), rows)
        np.testing.assert_array_equal(exact(bits(partial(a.scatter, 1, e, s))), expected)
        np.testing.assert_array_equal(exact(bits(partial(a.scatter, 1, each, s))), rows)


def test_an_inverse_of_unique_under_deterministic_algorithms(deterministic):
    x = values("int64", (500,))
    found, inverse = x.cuda().unique(return_inverse=True)
    expected, back = np.unique(x.numpy(), return_inverse=True)
    assert (found.cpu().numpy() == expected).all() and (inverse.cpu().numpy() == back).all()


def test_a_bad_index_is_named_where_indices_are_sorted():
    index = hot(300, 5)
    index[200] = 5
    x, source = taeda.zeros(2, 5, device="cuda"), taeda.ones(2, 300, device="cuda").half()
    x = x.half()
    x.index_add_(1, index.cuda(), source)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 1 with size 5"):
        taeda.cuda.synchronize()
    assert x.sum().item() == 2 * 299
    x.scatter_add_(1, index.cuda().expand(2, 300), source)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 1 with size 5"):
        taeda.cuda.synchronize()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_gradient_of_embedding(dtype, by_frequency, bits):
    index, table = hot(1400, 9).reshape(7, 200), values(dtype, (9, 5))
    gy = values(dtype, (7, 200, 5), 1)
    for padding in (None, 3):

        def gradient(padding=padding):
            w = table.cuda().requires_grad_()
            y = F.embedding(index.cuda(), w, padding, scale_grad_by_freq=by_frequency)
            return taeda.autograd.grad(y, w, gy.cuda())[0]

        found, flat = bits(gradient), index.numpy().reshape(-1)
        expected = np.zeros((9, 5))
        np.add.at(expected, flat, exact(gy).reshape(-1, 5))
        if by_frequency:
            expected /= np.maximum(np.bincount(flat, minlength=9), 1)[:, None]
        if padding is not None:
            expected[padding] = 0
        close(found, expected, dtype, 1400)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_gradient_of_bags_with_a_row_that_most_of_them_have(dtype, mode, bits):
    index, table = hot(1500, 6), values(dtype, (6, 3))
    starts = np.arange(0, 1500, 50)
    gy = values(dtype, (30, 3), 1)

    def gradient():
        w = table.cuda().requires_grad_()
        y = F.embedding_bag(index.cuda(), w, taeda.tensor(starts).cuda(), mode=mode)
        return taeda.autograd.grad(y, w, gy.cuda())[0]

    expected = np.zeros((6, 3))
    np.add.at(expected, index.numpy(), np.repeat(exact(gy), 50, 0) / (50 if mode == "mean" else 1))
    close(bits(gradient), expected, dtype, 1500)


def test_weighted_counts_of_few_bins(bits):
    x, weights = hot(5000, 3), values("float64", (5000,))
    found = bits(lambda: x.cuda().bincount(weights.cuda()))
    expected = np.bincount(x.numpy(), weights.numpy())
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
