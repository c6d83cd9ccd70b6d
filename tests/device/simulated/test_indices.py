"""Gathering, scattering and copies on a simulated device, by its kernels."""

import pytest
from tests.device.simulated.by_kernels import NUMBERS, REAL, agree, layouts, values

import taeda
from taeda import _C


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def indices(sizes, below, seed=0):
    return (values("int64", sizes, seed) + 5) % below


def test_copies_convert_between_all_types():
    for source in NUMBERS:
        x = (
            values(source, (3, 5)).abs()
            if source.startswith(("float", "bfloat"))
            else values(source, (3, 5))
        )
        for target in NUMBERS:
            if source.startswith("complex") and not target.startswith("complex"):
                continue
            t = getattr(taeda, target)
            agree(lambda x, t=t: x.to(t), x, what=f"{source} {target}")
            agree(lambda x, t=t: x.t().to(t).contiguous(), x, what=f"{source} {target} transposed")


def test_copies_of_any_layout():
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            agree(lambda x: x.contiguous(), x, what=f"{dtype} {layout}")
            agree(lambda x: taeda.cat([x, x], 1), x, what=f"{dtype} {layout} cat")
            agree(lambda x: x.flatten(), x, what=f"{dtype} {layout} flatten")


def test_fills_of_any_layout():
    for dtype in REAL:
        x = values(dtype, (4, 6))

        def fill(x):
            y = x.clone()
            y[1:, ::2] = 3
            y.t()[0].fill_(1)
            return y

        agree(fill, x, what=dtype)
    assert taeda.full((3, 3), 1.5, device="cuda").tolist() == [[1.5] * 3] * 3


def test_copies_wait_for_nothing(simulator, late):
    x = taeda.ones(8, 8, device="cuda")
    before = simulator.count("synchronizations")
    y = x.t().contiguous().double()
    y[:, 1] = 2
    assert simulator.count("synchronizations") == before
    assert y[0].tolist() == [1, 2, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather(dim):
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for sizes in ((3, 4, 5), (2, 3, 4)):
                index = indices(sizes, x.shape[dim])
                agree(lambda x, i: x.gather(dim, i), x, index, what=f"{dtype} {layout} {sizes}")
    for n in (1, 100, 5000):
        agree(lambda x, i: x.gather(0, i), values("float32", (50,)), indices((n,), 50))


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_scatter(dim):
    for dtype in NUMBERS:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            if layout == "repeated":
                continue
            index, src = indices((2, 3, 4), x.shape[dim]), values(dtype, (2, 3, 4), 1)
            what = f"{dtype} {layout}"
            agree(lambda x, i, s: x.clone().scatter_(dim, i, s), x, index, src, what=what)
            agree(lambda x, i: x.clone().scatter_(dim, i, 1), x, index, what=what)
            agree(lambda x, i, s: x.clone().scatter_add_(dim, i, s), x, index, src, what=what)
            agree(lambda x, i, s: x.scatter(dim, i, s, reduce="multiply"), x, index, src, what=what)


def test_additions_of_long_lines_are_atomic():
    for dtype in ("float32", "float64", "int64", "complex64", "float16", "int32"):
        x, src = values(dtype, (10,)), values(dtype, (3000,), 1)
        if dtype == "float16":
            src = src[:100]
        agree(
            lambda x, i, s: x.scatter_add(0, i, s),
            x,
            indices(tuple(src.shape), 10),
            src,
            what=dtype,
        )


def test_rows_by_a_vector_of_indices():
    for dtype in NUMBERS:
        x, source, index = values(dtype, (5, 4)), values(dtype, (3, 4), 1), indices((3,), 5)
        agree(lambda x, i: x.index_select(0, i), x, index, what=dtype)
        agree(lambda x, i: x.t().index_select(1, i), x, index, what=dtype)
        agree(lambda x, i, s: x.index_add(0, i, s), x, index, source, what=dtype)
        distinct = taeda.tensor([4, 0, 2])
        agree(lambda x, i, s: x.index_copy(0, i, s), x, distinct, source, what=dtype)
    table = values("float32", (5, 4))
    for index in (indices((2, 3), 5), indices((3, 2), 5).t(), indices((4,), 5).to(taeda.int32)):
        agree(lambda x, i: taeda.nn.functional.embedding(i, x), table, index)


def test_an_index_out_of_bounds_is_raised_when_the_host_waits(late):
    x = taeda.arange(5.0, device="cuda")
    for bad in (5, -1, 7):
        y = x.gather(0, taeda.tensor([1, bad, 2], device="cuda"))
        with pytest.raises(
            IndexError,
            match=rf"^gather\(\): index {bad} is out of bounds for dimension 0 with size 5",
        ):
            y.cpu()
        assert (x + 1).tolist() == [1, 2, 3, 4, 5]
    x.scatter_(0, taeda.tensor([0, 9], device="cuda"), 7.0)  # the index is skipped
    with pytest.raises(IndexError, match=r"^scatter\(\): index 9 is out of bounds"):
        taeda.cuda.synchronize()
    assert x.tolist() == [7, 1, 2, 3, 4]
    taeda.nn.functional.embedding(taeda.tensor([9], device="cuda"), x.reshape(5, 1))
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        taeda.cuda.synchronize()
    taeda.cuda.synchronize()
