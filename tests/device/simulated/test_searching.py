"""Searches, sets, counts, order statistics and bags on a simulated device, by its kernels."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import (
    FLOATING,
    INTEGERS,
    NUMBERS,
    REAL,
    agree,
    layouts,
    values,
)

import taeda
from taeda import _C
from taeda.nn import functional as F

SORTABLE = [*INTEGERS, *FLOATING]


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def with_nan(x):
    y = x.clone()
    if y.is_floating_point():
        y.flatten()[::3] = float("nan")
        return y.reshape(x.shape)
    return y


def test_searches_of_sorted_rows():
    for dtype in SORTABLE:
        edges = values(dtype, (6,)).sort().values
        rows = values(dtype, (3, 6), 1).sort(dim=1).values
        for layout, v in layouts(dtype, (3, 4), 2).items():
            for right in (False, True):
                what = f"{dtype} {layout} {right}"
                agree(lambda e, v, r=right: taeda.searchsorted(e, v, right=r), edges, v, what=what)
                agree(lambda e, v, r=right: taeda.searchsorted(e, v, right=r), rows, v, what=what)
                agree(
                    lambda e, v, r=right: taeda.bucketize(v, e, right=r, out_int32=True), edges, v
                )
    edges, v = with_nan(values("float32", (9,))).sort().values, with_nan(values("float32", (7,)))
    agree(lambda e, v: taeda.searchsorted(e, v), edges, v)
    agree(lambda e, v: taeda.searchsorted(e, v, side="right"), edges, v)
    order = taeda.tensor([2, 0, 1])
    agree(lambda e, v, s: taeda.searchsorted(e, v, sorter=s), taeda.tensor([2, 3, 1]), v, order)
    agree(lambda e, v: taeda.searchsorted(e, v), values("float32", (0,)), v)
    agree(lambda e, v: taeda.searchsorted(e, v), edges, values("float32", (0, 2)))
    assert taeda.searchsorted(edges.cuda(), 0.5).item() == taeda.searchsorted(edges, 0.5).item()


def test_whether_elements_are_among_others():
    for dtype in [d for d in REAL if d != "bool"]:
        for layout, x in layouts(dtype, (3, 4)).items():
            few = values(dtype, (3,), 1)
            agree(lambda x, t: taeda.isin(x, t), x, few, what=f"{dtype} {layout}")
            agree(lambda x, t: taeda.isin(x, t, invert=True), x, few, what=f"{dtype} {layout}")
    agree(lambda x, t: taeda.isin(x, t), values("int64", (3,)), values("int64", (0,)))
    agree(lambda x, t: taeda.isin(x, t), values("int64", (0,)), values("int64", (3,)))
    agree(lambda x, t: taeda.isin(x, t), values("int64", (9,)), values("float32", (4,)).round())


def test_unique_elements():
    for dtype in REAL:
        for layout, x in layouts(dtype, (4, 6)).items():
            what = f"{dtype} {layout}"
            x = x.round() if x.is_floating_point() else x
            agree(lambda x: x.unique(return_inverse=True, return_counts=True), x, what=what)
            agree(lambda x: x.unique(), x, what=what)
            agree(lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), x)
    for x in (values("int64", (0,)), values("float32", (1,)), with_nan(values("float32", (9,)))):
        agree(lambda x: x.unique(return_inverse=True, return_counts=True), x)
    big = (values("float32", (3000,)) * 9).round()
    agree(lambda x: x.unique(return_inverse=True, return_counts=True), big)


def test_unique_rows():
    for dtype in REAL:
        x = values(dtype, (5, 2, 3))
        x = taeda.cat([x, x.flip(0), x[:2]])
        for dim in (0, 1, 2):
            agree(
                lambda x, d=dim: x.unique(dim=d, return_inverse=True, return_counts=True),
                x,
                what=dtype,
            )
            agree(lambda x, d=dim: x.unique_consecutive(dim=d, return_inverse=True), x, what=dtype)
    coarse = (values("int64", (300, 2), 1) % 3).float()
    agree(lambda x: x.unique(dim=0, return_inverse=True, return_counts=True), coarse)
    agree(lambda x: x.unique(dim=0, return_counts=True), values("float32", (1, 3)))
    agree(lambda x: x.unique(dim=0, return_inverse=True), values("float32", (0, 3)))


def test_counts():
    for dtype in INTEGERS:
        x = values(dtype, (200,)).abs()
        agree(lambda x: x.bincount(), x, what=dtype)
        agree(lambda x: x.bincount(minlength=40), x, what=dtype)
        for weights in ("float32", "float64", "int32"):
            agree(
                lambda x, w: x.bincount(w), x, values(weights, (200,), 1), what=f"{dtype} {weights}"
            )
    agree(lambda x: x.bincount(minlength=3), values("int64", (0,)))
    with pytest.raises(RuntimeError, match="non-negative"):
        taeda.tensor([1, -1], device="cuda").bincount()


@pytest.mark.parametrize("bins", [1, 7, 2048, 2049, 4096, 4097])
def test_counts_in_memory_of_blocks_and_of_the_device(bins, bits):
    random = np.random.default_rng(bins)
    x = np.where(random.random(40_000) < 0.5, bins // 2, random.integers(0, bins, 40_000))
    x[0] = bins - 1
    found = bits(lambda: taeda.tensor(x).cuda().bincount())
    assert found.dtype == taeda.int64 and (found.numpy() == np.bincount(x)).all()
    found = bits(lambda: (taeda.tensor(x).cuda() + 0.5).double().histc(bins, 0, bins))
    assert (found.numpy() == np.bincount(x)).all()
    wide = taeda.tensor(x).cuda().float().reshape(200, 200).t()[::2]
    found = bits(lambda: wide.histc(bins, -0.25, bins - 0.25))
    assert (found.numpy() == np.bincount(x.reshape(200, 200).T[::2].ravel(), minlength=bins)).all()


def test_histograms():
    for dtype in FLOATING:
        for layout, x in layouts(dtype, (30, 4)).items():
            what = f"{dtype} {layout}"
            agree(lambda x: x.histc(8, -2, 2), x, what=what)
            agree(lambda x: x.histc(5), x, what=what)
    agree(lambda x: x.histc(4, 0, 1), values("float32", (0,)))
    agree(lambda x: x.histc(4), taeda.ones(7))


def test_repeated_indices():
    for dtype in ("int32", "int64"):
        n = values(dtype, (9,)).abs() - 1
        agree(lambda n: taeda.repeat_interleave(n), n, what=dtype)
        agree(lambda n: taeda.repeat_interleave(n[:0]), n, what=dtype)
        agree(lambda x, n: x.repeat_interleave(n, 0), values("float32", (9, 2)), n, what=dtype)
    with pytest.raises(RuntimeError, match="negative"):
        taeda.repeat_interleave(taeda.tensor([2, -1], device="cuda"))


def test_repeats_of_a_known_sum_wait_for_nothing(simulator, late):
    n = taeda.tensor([2, 0, 3], device="cuda")
    taeda.repeat_interleave(n, output_size=5)  # kernels are loaded
    before = simulator.count("synchronizations")
    y = taeda.repeat_interleave(n, output_size=5)
    assert simulator.count("synchronizations") == before
    assert y.tolist() == [0, 0, 2, 2, 2]
    rows = taeda.ones(3, 4, device="cuda")
    before = simulator.count("synchronizations")
    rows = rows.repeat_interleave(n, 0, output_size=5)
    assert simulator.count("synchronizations") == before
    assert rows.shape == (5, 4)


@pytest.mark.parametrize("repeats, size, message", [
    ([2, 0, 3], 4, "output_size is not the sum of repeats, which is 1 more"),
    ([2, 0, 3], 7, "output_size is not the sum of repeats, which is -2 more"),
    ([2, -1, 3], 4, "repeats can not be negative, got -1"),
])  # fmt: skip
def test_repeats_that_are_not_what_is_said_raise_when_the_host_waits(late, repeats, size, message):
    n = taeda.tensor(repeats, device="cuda")
    taeda.repeat_interleave(n, output_size=size)
    with pytest.raises(RuntimeError, match=message):
        taeda.cuda.synchronize()
    for wrong in (-1, 3):
        with pytest.raises(RuntimeError, match=f"output_size {wrong} is not the sum of repeats"):
            taeda.repeat_interleave(n[: min(wrong, 0)], output_size=wrong)


def waits(simulator, work):
    """How often the host waited; the kernels are loaded before."""
    work()
    before = simulator.count("synchronizations"), _C._host_reads()
    work()
    return simulator.count("synchronizations") - before[0], _C._host_reads() - before[1]


def test_counts_wait_once_for_their_size(simulator):
    """As nonzero and masks do, and PyTorch's, whatever `minlength` says."""
    x = taeda.tensor([1, 4, 1], device="cuda")
    for call in (x.bincount, lambda: x.bincount(minlength=9), x.nonzero):
        assert waits(simulator, call)[1] == 1
    assert waits(simulator, lambda: x.bincount(x.float()))[1] == 1


def test_the_first_that_are_not_zero_are_found_without_waiting(simulator):
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4)).items():
            x = x * (values("int64", (3, 4), 5) > 0).to(x.dtype)
            for size in (0, 3, 20):
                agree(
                    lambda x, n=size: taeda.nonzero_static(x, size=n, fill_value=-7), x,
                    what=f"{dtype} {layout} {size}",
                )  # fmt: skip
    for shape in ((0,), (2, 0, 3), (3, 1, 2, 2)):
        for x in (taeda.zeros(shape), taeda.ones(shape)):
            agree(lambda x: taeda.nonzero_static(x, size=4), x, what=str(shape))
    x = values("float32", (5, 3)).cuda()
    assert waits(simulator, lambda: taeda.nonzero_static(x, size=4)) == (0, 0)


def test_numbers_beside_polynomials_wait_for_nothing(simulator):
    x, n = taeda.linspace(-1, 1, 5, device="cuda"), taeda.arange(5, device="cuda")
    for call in (
        lambda: taeda.special.hermite_polynomial_h(x, 3),
        lambda: taeda.special.legendre_polynomial_p(0.5, n),
    ):
        assert waits(simulator, call) == (0, 0)
        assert call().device == x.device


@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "max", "min"])
def test_segments_of_bounds_that_nobody_checks_wait_for_nothing(simulator, reduce):
    x = values("float32", (9, 2))
    bounds, lengths = taeda.tensor([0, 3, 3, 9]), taeda.tensor([3, 1, 5])
    calls = {
        "offsets": (lambda x, n: taeda.segment_reduce(x, reduce, offsets=n), bounds, 0),
        "unsafe": (
            lambda x, n: taeda.segment_reduce(x, reduce, lengths=n, unsafe=True),
            lengths,
            0,
        ),
        "lengths": (lambda x, n: taeda.segment_reduce(x, reduce, lengths=n), lengths, 2),
    }
    for what, (call, n, reads) in calls.items():
        agree(call, x, n, what=what)
        there = x.cuda(), n.cuda()
        found = waits(simulator, lambda c=call, t=there: c(*t))
        assert found[1] == reads and (found[0] == 0) == (reads == 0), what


def test_segments_that_end_before_they_begin_raise_when_the_host_waits(late):
    x, bounds = taeda.ones(9, device="cuda"), taeda.tensor([0, 5, 3, 9], device="cuda")
    taeda.segment_reduce(x, "sum", offsets=bounds)
    with pytest.raises(RuntimeError, match="segment_length >= 0, but got a segment of -2"):
        taeda.cuda.synchronize()
    lengths = taeda.tensor([4, -1, 6], device="cuda")
    taeda.segment_reduce(x, "sum", lengths=lengths, unsafe=True)
    with pytest.raises(RuntimeError, match="segment_length >= 0, but got a segment of -1"):
        taeda.cuda.synchronize()
    with pytest.raises(RuntimeError, match="lengths contains negative value"):
        taeda.segment_reduce(x, "sum", lengths=lengths)


def test_an_assertion_waits_for_nothing(simulator, late):
    good, bad = (taeda.tensor(v, device="cuda") for v in (2.5, 0.0))
    assert waits(simulator, lambda: taeda._assert_async(good)) == (0, 0)
    taeda._assert_async(bad, "what a program says")
    with pytest.raises(RuntimeError, match="what a program says"):
        taeda.cuda.synchronize()
    taeda._assert_async(bad)
    with pytest.raises(RuntimeError, match="single nonzero value, but got zero"):
        taeda.cuda.synchronize()
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        taeda._assert_async(taeda.ones(2, device="cuda"))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_order_statistics(dim):
    for dtype in SORTABLE:
        for layout, x in layouts(dtype, (5, 4, 7)).items():
            what = f"{dtype} {layout}"
            if layout == "repeated" and dim == 0:
                continue  # equal elements, of which any one's index will do
            agree(lambda x: x.kthvalue(2, dim)[0], x, what=what)
            agree(lambda x: x.median(dim)[0], x, what=what)
            agree(lambda x: x.median(dim, True)[0], with_nan(x), what=what)
            agree(lambda x: x.nanmedian(dim)[0], with_nan(x), what=what)
            agree(lambda x: x.mode(dim), x, what=what)
            agree(lambda x: x.mode(dim, keepdim=True), x.clone().sign(), what=what)
    x = values("float64", (5, 4, 7))
    for name, args in (("kthvalue", (3, dim)), ("median", (dim,)), ("nanmedian", (dim, True))):
        agree(lambda x, n=name, a=args: getattr(x, n)(*a), x, what=name)


def test_order_statistics_of_long_rows_and_of_single_elements():
    x = (values("float32", (3, 700)) * 20).round()
    agree(lambda x: x.mode(1).values, x)  # the CPU's index is that of an unstable sort
    agree(lambda x: x.gather(1, x.mode(1, keepdim=True).indices), x)
    agree(lambda x: x.median(1)[0], x)
    agree(lambda x: x.kthvalue(500, 1)[0], x)
    for name in ("median", "nanmedian", "mode"):
        x = taeda.tensor(3.0, device="cuda")
        assert getattr(x, name)(0)[0].item() == 3
    nothing = taeda.full((2, 3), float("nan"))
    agree(lambda x: x.nanmedian(1), nothing)
    agree(lambda x: x.median(1), nothing)
    assert taeda.tensor([3.0, 1.0, 2.0], device="cuda").median().item() == 2


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_scatter_reduce(reduce, include_self):
    for dtype in NUMBERS:
        if dtype.startswith("complex") and reduce.startswith("am"):
            continue
        for layout, x in layouts(dtype, (3, 4)).items():
            index = (values("int64", (5, 4), 3) + 5) % 3
            src = values(dtype, (5, 4), 1)
            agree(
                lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self),
                x, index, src, what=f"{dtype} {layout}",
            )  # fmt: skip
    agree(
        lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=include_self),
        values("int64", (7,)), (values("int64", (300,)) + 5) % 7, values("int64", (300,), 1),
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags(mode):
    table = values("float32", (9, 5))
    flat = (values("int64", (20,)) + 5) % 9
    for weights in (None, "weights") if mode == "sum" else (None,):
        for offsets in (taeda.tensor([0, 4, 4, 11]), taeda.tensor([0])):
            w = values("float32", (20,), 1) if weights else None

            def bag(t, i, o, w=w):
                w = None if w is None else w.to(t.device)
                return F.embedding_bag(i, t, o, mode=mode, per_sample_weights=w)

            agree(bag, table, flat, offsets)


# Of more than 1,024 indices a bag is summed in pieces of 256: these end at, before and behind them.
LONG_BAGS = [
    [0], [0, 1], [0, 3000], [0, 1024], [0, 1024, 2048], [0, 1025], [0, 256, 1281, 2305],
    [0, 255, 1290, 1291, 2400], [0, 0, 1100, 1100, 2999], [0, 100, 300, 700, 1200],
]  # fmt: skip


@pytest.mark.parametrize("starts", LONG_BAGS, ids=str)
def test_long_bags_are_summed_in_pieces(starts):
    for dtype, width in (("float64", 3), ("float32", 1), ("bfloat16", 70)):
        table = (values("int64", (9, width)) % 3).to(getattr(taeda, dtype))  # exact sums
        flat = (values("int64", (3000,)) + 5) % 9
        weights = (values("int64", (3000,), 1) % 2).to(table.dtype)
        for w in (None, weights):
            agree(
                lambda t, i, o, w=w: F.embedding_bag(
                    i, t, o, mode="sum", per_sample_weights=None if w is None else w.to(t.device)
                ),
                table, flat, taeda.tensor(starts), what=f"{dtype} {width}",
            )  # fmt: skip


def test_a_long_bag_has_the_same_bits_in_every_order(simulator):
    table, flat = values("float32", (50, 3)).cuda(), (values("int64", (5000,)) + 5).cuda()
    sums = set()
    for seed in range(4):
        simulator.schedule(seed)
        y = F.embedding_bag(flat, table, taeda.tensor([0], device="cuda"), mode="sum")
        sums.add(tuple(y.flatten().tolist()))
    assert len(sums) == 1
    expected = table.cpu().double().numpy()[flat.cpu().numpy()].sum(0)
    np.testing.assert_allclose(next(iter(sums)), expected, rtol=1e-5)


def test_gradients_of_bags():
    flat, offsets = (values("int64", (40,)) + 5) % 9, taeda.tensor([0, 4, 4, 11, 30])
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        whole = values("int64", (9, 6)).to(getattr(taeda, dtype))  # sums of which are exact
        w = (values("int64", (40,), 1) % 2).to(whole.dtype)

        def gradients(t, i, o, w):
            t, w = t.clone().requires_grad_(), w.clone().requires_grad_()
            y = F.embedding_bag(i, t, o, mode="sum", per_sample_weights=w)
            return taeda.autograd.grad(y.sum(), (t, w))

        agree(gradients, whole, flat, offsets, w, what=dtype)


def test_a_row_that_a_bag_does_not_have_is_raised_when_the_host_waits(late):
    table = taeda.ones(3, 2, device="cuda")
    for bad in (3, -1):
        F.embedding_bag(
            taeda.tensor([0, bad], device="cuda"),
            table,
            taeda.tensor([0], device="cuda"),
            mode="sum",
        )
        with pytest.raises(RuntimeError, match=f"found idx to be {bad}"):
            taeda.cuda.synchronize()


def test_a_row_that_a_long_bag_does_not_have_is_raised_when_the_host_waits(late):
    table, index = taeda.ones(3, 2, device="cuda"), taeda.zeros(2000, dtype=taeda.int64)
    index[1999] = 3
    F.embedding_bag(index.cuda(), table, taeda.tensor([0], device="cuda"), mode="sum")
    with pytest.raises(RuntimeError, match="found idx to be 3"):
        taeda.cuda.synchronize()
    index[1999] = 0
    for starts, wrong in (([0, 1500, 100], 100), ([0, 2500], 2500)):
        F.embedding_bag(index.cuda(), table, taeda.tensor(starts).cuda(), mode="sum")
        with pytest.raises(RuntimeError, match=rf"offsets\[\d\] is {wrong}"):
            taeda.cuda.synchronize()


def test_sets_wait_for_the_device_once(simulator):
    x = taeda.tensor([3, 1, 3], device="cuda")
    reads = _C._host_reads()
    x.unique(return_inverse=True, return_counts=True)
    x.unique_consecutive()
    x.bincount()
    x.repeat_interleave(x)
    assert _C._host_reads() == reads + 4
    taeda.isin(x, x)
    taeda.searchsorted(x, x)
    x.mode()
    assert _C._host_reads() == reads + 4


def test_histograms_equal_numpys():
    x = np.random.default_rng(0).normal(size=2000)
    got = taeda.tensor(x, device="cuda").histc(10, -2, 2).tolist()
    assert got == np.histogram(x, 10, (-2, 2))[0].tolist()
