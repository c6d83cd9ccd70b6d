"""index, index_put_, take, put_ and masks on a simulated device, by its kernels."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import NUMBERS, agree, layouts, values

import taeda
from taeda import _C


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def indices(sizes, below, seed=0):
    """Of either sign."""
    drawn = np.random.default_rng(seed).integers(-below, below, sizes)
    return taeda.tensor(drawn)


def distinct(count, below, seed=0):
    return taeda.tensor(np.random.default_rng(seed).permutation(below)[:count])


READS = {
    "rows": lambda x, i, j: x[i],
    "columns": lambda x, i, j: x[:, j],
    "elements": lambda x, i, j: x[i, j],
    "behind": lambda x, i, j: x[..., i],
    "apart": lambda x, i, j: x[i, :, j],
    "both ends": lambda x, i, j: x[i.reshape(2, 1), :, j[:1].reshape(1, 1)],
    "middle": lambda x, i, j: x[:, i.reshape(1, 2), 1],
    "expanded": lambda x, i, j: x[i[:1].expand(3, 2)],
    "transposed": lambda x, i, j: x[taeda.stack([i, j]).t()],
    "int32": lambda x, i, j: x[i.int(), j.int()],
    "number": lambda x, i, j: x[1, i],
    "0-d": lambda x, i, j: x[i[0].clone(), :, j],
    "none": lambda x, i, j: x[i[:0]],
}


@pytest.mark.parametrize("name", READS)
def test_reads(name):
    i, j = indices((2,), 3), indices((2,), 3, 1)
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            agree(READS[name], x, i, j, what=f"{dtype} {layout}")


def test_reads_of_many_rows_and_of_wide_ones():
    for sizes, count in (((7, 3), 3000), ((40, 700), 5), ((5000,), 20), ((2, 3, 4, 5), 9)):
        agree(lambda x, i: x[i], values("float32", sizes), indices((count,), sizes[0]))


def test_rows_move_by_as_many_elements_as_lie_side_by_side():
    for dtype in ("uint8", "float16", "float32", "float64", "complex128"):
        for width in (16, 12, 6, 5):
            for shift in (0, 1, 4):

                def row(x, w=width, s=shift):
                    return x[..., s : s + w]

                def put(x, v, w=width, s=shift):
                    y = x.clone()
                    i = taeda.tensor([4, 1], device=x.device)
                    y[..., s : s + w].index_put_((i,), v)
                    y[..., s : s + w].index_put_((i[:1] - 4, i[1:]), v[0, 0])
                    return y

                x, v = values(dtype, (5, 3, width + 4)), values(dtype, (2, 3, width), 1)
                what, i = f"{dtype} {width} {shift}", indices((4,), 5)
                agree(lambda x, i, r=row: r(x)[i], x, i, what=what)
                agree(lambda x, i, r=row: r(x)[:, i % 3], x, i, what=what)
                agree(put, x, v, what=what)


def at(x, numbers):
    return taeda.tensor(numbers, device=x.device)


VIEWS = {
    "every second": lambda x: x[::2, :, 1::2],
    "repeated": lambda x: x[:, :1, :4].expand(-1, 3, -1),
    "overlapping": lambda x: x.as_strided((4, 3, 4), (4, 2, 1), 3),
    "permuted": lambda x: x[1:, :, 2:].permute(2, 0, 1),
}
OF_VIEWS = {
    "flip": lambda x: x.flip(0, 2), "tril": lambda x: x.tril(), "triu": lambda x: x.triu(1),
    "pad": lambda x: taeda.nn.functional.pad(x, (1, 2, -1, 0), value=1),
    "reflect": lambda x: taeda.nn.functional.pad(x, (1, 2), mode="reflect"),
    "rows": lambda x: x[at(x, [1, -1])], "mask": lambda x: x[x > 0],
    "columns": lambda x: x[:, at(x, [1, 1, 0]), 1],
    "nonzero": lambda x: (x > 0).nonzero(), "view's nonzero": lambda x: x.nonzero(),
    "take": lambda x: x.take(at(x, [[5, -1], [0, 9]])),
    "masked_select": lambda x: x.masked_select(x[0] > 0), "median": lambda x: x.median(1)[0],
    "kthvalue": lambda x: x.kthvalue(2, 0)[0], "mode": lambda x: x.mode(2),
    "unique": lambda x: x.unique(return_inverse=True, return_counts=True),
    "unique rows": lambda x: x.unique(dim=1, return_counts=True),
    "runs": lambda x: x.unique_consecutive(return_counts=True),
    "histc": lambda x: x.double().histc(5, -3, 3), "isin": lambda x: taeda.isin(x, x[0, 0]),
    "searchsorted": lambda x: taeda.searchsorted(x[0, 0].sort()[0], x),
    "reduce": lambda x: x.scatter_reduce(0, (x[:2] > 0).long(), x, "amax"),
    "scatter": lambda x: taeda.zeros_like(x).masked_scatter_(x > 0, x),
    "put": lambda x: taeda.zeros(20, device=x.device, dtype=x.dtype).index_put_(
        ((x[0] > 0).long(),), x[1], True),
}  # fmt: skip


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("name", OF_VIEWS)
def test_operators_on_views_of_a_devices_memory(name, view):
    for dtype in ("float32", "int64", "bfloat16", "uint8"):
        x = values(dtype, (6, 3, 8))
        agree(lambda x: OF_VIEWS[name](VIEWS[view](x)), x, what=dtype)


def test_more_index_tensors_than_a_kernel_takes():
    x = values("float32", (2, 3, 2, 3, 2, 3))
    given = [indices((4,), n, k) for k, n in enumerate(x.shape)]
    agree(lambda x, *i: x[i], x, *given)
    agree(lambda x, *i: x[i[:5]], x, *given)
    agree(lambda x, *i: x[:, i[1], i[2], i[3], i[4], i[5]], x, *given)

    def put(x, *i):
        return x.index_put(i, x.new_ones(4), accumulate=True)

    agree(put, x, *given)
    agree(lambda x, *i: x.index_put(i, x.new_ones(4)), x, *given)


@pytest.mark.parametrize("name", ["rows", "columns", "elements", "apart", "behind", "none"])
def test_additions_are_in_the_order_of_the_indices(name):
    where = {
        "rows": lambda i, j: (i,), "columns": lambda i, j: (None, j),
        "elements": lambda i, j: (i, j), "apart": lambda i, j: (i, None, j),
        "behind": lambda i, j: (None, None, i), "none": lambda i, j: (i[:0],),
    }[name]  # fmt: skip
    i, j = indices((6,), 3), indices((6,), 3, 1)

    def add(x, i, j):
        at = where(i, j)
        value = x[tuple(slice(None) if k is None else k for k in at)]
        weights = taeda.arange(1, value.numel() + 1, device=x.device).reshape(value.shape) % 5
        return x.clone().index_put_(at, weights.to(x.dtype), accumulate=True)

    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            if layout != "repeated":
                agree(add, x, i, j, what=f"{dtype} {layout}")


def test_one_value_for_all_indices():
    i = indices((50,), 4)
    for dtype in NUMBERS:
        x = values(dtype, (4, 3))
        agree(lambda x, i: x.index_put((i,), x.new_ones(()), accumulate=True), x, i, what=dtype)
        agree(lambda x, i: x.index_put((i,), x[0]), x, i, what=dtype)


def test_sums_over_long_runs_have_the_same_bits_each_time():
    x, i, v = values("float32", (3,)), indices((3000,), 3), values("float32", (3000,), 1)
    args = [t.to("cuda") for t in (x, i, v)]
    first = args[0].index_put((args[1],), args[2], accumulate=True)
    for _ in range(3):
        assert taeda.equal(args[0].index_put((args[1],), args[2], accumulate=True), first)
    exact = x.double().numpy().copy()
    np.add.at(exact, i.numpy(), v.double().numpy())
    np.testing.assert_allclose(first.cpu().numpy(), exact, rtol=1e-4, atol=1e-4)


def test_assignments():
    i = distinct(2, 3)
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            if layout == "repeated":
                continue
            v = values(dtype, (2, 4, 5), 1)

            def rows(x, i, v):
                y = x.clone()
                y[i] = v
                y[:, i - 1] = 1
                y[i, :, i] = v[:, :, 0]
                y[y == 1] = 0
                return y

            agree(rows, x, i, v, what=f"{dtype} {layout}")


def test_the_last_of_several_writes_counts_where_that_is_asked(deterministic):
    for dtype in NUMBERS:
        x, i, v = values(dtype, (5, 3)), indices((400,), 5), values(dtype, (400, 3), 1)
        agree(lambda x, i, v: x.index_put((i,), v), x, i, v, what=dtype)
        k, w = indices((300,), 15, 2), values(dtype, (300,), 3)
        agree(lambda x, k, w: x.clone().put_(k, w), x, k, w, what=dtype)
        agree(lambda x, k, w: x.clone().t().put_(k, w), x, k, w, what=dtype)
        flat = indices((300,), 15, 2) % 15
        agree(lambda x, k, w: x.reshape(-1).scatter(0, k, w), x, flat, w, what=dtype)
        agree(lambda x, k, w: x.reshape(-1).index_add(0, k, w), x, flat, w, what=dtype)


def test_take_and_put_count_in_row_major_order():
    k = indices((2, 6), 12)
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4)).items():
            what = f"{dtype} {layout}"
            agree(lambda x, k: x.take(k), x, k, what=what)
            agree(lambda x, k: x.take(k.t()), x, k, what=what)
            if layout == "repeated":
                continue
            v = values(dtype, (12,), 1)
            agree(lambda x, k, v: x.clone().put_(k, v, accumulate=True), x, k, v, what=what)
            every = distinct(12, 12)
            agree(lambda x, k, v: x.clone().put_(k, v.reshape(3, 4)), x, every, v, what=what)
            agree(lambda x, k, v: x.clone().t().put_(k, v), x, every, v, what=what)
    agree(lambda x, k: x.take(k), values("float32", (3, 4)), taeda.zeros(0, dtype=taeda.int64))
    assert taeda.tensor(5.0, device="cuda").take(taeda.tensor([-1, 0], device="cuda")).sum() == 10


def test_nonzero():
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            agree(lambda x: (x * (x != x.flatten()[0])).nonzero(), x, what=f"{dtype} {layout}")
            agree(lambda x: taeda.argwhere(x == x.flatten()[0]), x, what=f"{dtype} {layout}")
    for sizes in ((0,), (3, 0), (1, 1)):
        agree(lambda x: x.nonzero(), values("float32", sizes))
        agree(lambda x: (x * 0).nonzero(), values("float32", sizes))
    assert taeda.tensor(2.0, device="cuda").nonzero().shape == (1, 0)
    assert taeda.tensor(0.0, device="cuda").nonzero().shape == (0, 0)
    agree(lambda x: taeda.nonzero_static(x > 0, size=3), values("float32", (9,)))
    agree(lambda x: taeda.nonzero_static(x > 0, size=30), values("float32", (3, 3)))


def test_masks_of_many_elements():
    for n in (127, 1024, 1025, 5000):
        x = values("float32", (n,))
        agree(lambda x: (x > 0.5).nonzero(), x)
        agree(lambda x: x[x > -0.5], x)
        agree(lambda x: x[x > 9], x)


def test_a_mask_selects_in_row_major_order():
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            mask = values("bool", (3, 4, 5), 2)
            agree(lambda x, m: x[m], x, mask, what=f"{dtype} {layout}")
            agree(lambda x, m: x.masked_select(m[0]), x, mask, what=f"{dtype} {layout}")
            agree(lambda x, m: x[m[:, :, 0]], x, mask, what=f"{dtype} {layout}")
            agree(lambda x, m: x[:, m[0]], x, mask, what=f"{dtype} {layout}")
    x = values("float32", (3, 4))
    agree(lambda x: x.masked_select(x[0] > 0), x)
    agree(lambda x: x[taeda.tensor(True, device=x.device)], x)
    agree(lambda x: x[taeda.tensor(False, device=x.device)], x)


def test_a_source_fills_where_a_mask_is_true():
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            if layout == "repeated":
                continue
            mask, source = values("bool", (3, 4, 5), 2), values(dtype, (5, 12), 1)
            what = f"{dtype} {layout}"
            agree(lambda x, m, s: x.clone().masked_scatter_(m, s), x, mask, source, what=what)
            agree(
                lambda x, m, s: x.clone().masked_scatter_(m[0], s.t()), x, mask, source, what=what
            )
    x = values("bool", (40,))
    agree(lambda x: x.clone().masked_scatter_(x, ~x), x)

    def by_itself(x):
        y = x.clone()
        return y.masked_scatter_(y, y.flip(0))

    agree(by_itself, x)


def test_indices_and_masks_may_be_the_cpus():
    x = values("float32", (4, 3))
    index, mask = taeda.tensor([2, -1]), x[:, 0] > 0
    assert x.cuda()[index].tolist() == x[index].tolist()
    assert x.cuda()[mask].tolist() == x[mask].tolist()
    y = x.cuda()
    y[mask] = 1.0
    y[index, 1] = 2
    z = x.clone()
    z[mask] = 1.0
    z[index, 1] = 2
    assert y.tolist() == z.tolist()


def test_only_masks_wait_for_the_device(simulator, late):
    x = taeda.ones(8, 8, device="cuda")
    i = taeda.tensor([1, -1], device="cuda")

    def waits():
        before = simulator.count("synchronizations"), _C._host_reads()
        x[i] = x[i - 1] + x[i, i].unsqueeze(1)
        x.index_put_((i,), x.new_ones(()), accumulate=True)
        x.put_(i, x.take(i), accumulate=True)
        x.masked_scatter_(x > 0, x.clone())
        return simulator.count("synchronizations") - before[0], _C._host_reads() - before[1]

    waits()  # kernels are loaded
    assert waits() == (0, 0)
    mask = x > 0
    reads = _C._host_reads()
    assert mask.nonzero().shape == (64, 2)
    assert _C._host_reads() == reads + 1


BAD = {
    "index": (
        lambda x, i: x[i],
        r"index\(\): index {} is out of bounds for dimension 0 with size 5",
    ),
    "second": (lambda x, i: x.reshape(1, 5)[:, i], "index {} is out of bounds for dimension 1"),
    "put": (
        lambda x, i: x.index_put_((i,), x.new_ones(())),
        "index {} is out of bounds for dimension 0",
    ),
    "add": (
        lambda x, i: x.index_put_((i,), x.new_ones(()), accumulate=True),
        "index {} is out of bounds",
    ),
    "take": (
        lambda x, i: x.take(i),
        r"take\(\): out of range: tried to access index {} on a tensor of 5",
    ),
    "put_": (lambda x, i: x.put_(i, x[:3].clone()), "tried to access index {} on a tensor of 5"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_index_out_of_bounds_is_raised_when_the_host_waits(name, late):
    call, message = BAD[name]
    for bad in (5, -6, 2**40):
        x = taeda.arange(5.0, device="cuda")
        call(x, taeda.tensor([1, bad, 2], device="cuda"))
        with pytest.raises(IndexError, match=message.format(bad)):
            taeda.cuda.synchronize()
        taeda.cuda.synchronize()
        assert (x + 1).shape == (5,)  # the context lives on
        assert x[3:].tolist() == [3, 4]  # what no index named is as it was


def test_a_source_that_is_too_short_is_raised_when_the_host_waits(late):
    x = taeda.zeros(4, device="cuda")
    x.masked_scatter_(taeda.tensor([True, True, False, True], device="cuda"), x.new_ones(2))
    with pytest.raises(RuntimeError, match="source < number of ones in mask"):
        taeda.cuda.synchronize()
    assert x.tolist() == [1, 1, 0, 0]


def test_gradients_of_indexing():
    i = indices((7,), 3)

    def gradient(x, i):
        x = x.clone().requires_grad_()
        y = x[i].pow(2).sum() + x[x > 0].sum() + x.take(i).sum() + (x[:, i - 1] * x[:, i]).sum()
        return taeda.autograd.grad(y, x)[0]

    for dtype in ("float32", "float64"):
        agree(gradient, values(dtype, (3, 4)), i, what=dtype)
