"""Index operators beyond the grid: against NumPy, order of writes, bad indices, overlap, search."""

from __future__ import annotations

import numpy as np
import pytest

import taeda as torch

RANDOM = np.random.default_rng(11)


def tensor(*shape: int) -> torch.Tensor:
    return torch.from_numpy(RANDOM.standard_normal(shape))


I0, I1 = np.array([2, 0, 1]), np.array([1, 1, 3])
COLUMN = np.array([[0], [2]])
MASK = np.array([[True, False, True, True], [False] * 4, [True] * 4])
ADVANCED = [
    (I0,),
    (slice(None), I1),
    (I0, I1),
    (COLUMN, I1),
    (I0, slice(None), I1),
    (slice(None), I0, I1),
    (np.array([-1, -3]),),
    (MASK,),
    (MASK, I0[:1]),
    (slice(None), np.array([True, False, False, True])),
    (np.zeros((0,), dtype=np.int64),),
    (Ellipsis, I0),
    (None, I0),
]


def as_torch(index: tuple) -> tuple:
    return tuple(torch.from_numpy(i) if isinstance(i, np.ndarray) else i for i in index)


@pytest.mark.parametrize("index", ADVANCED, ids=str)
def test_reading_is_numpys(index: tuple) -> None:
    base = tensor(5, 4, 3)
    for x in (tensor(3, 4, 5), base.permute(2, 1, 0)):
        np.testing.assert_array_equal(x[as_torch(index)].numpy(), x.numpy()[index])


def test_leading_ones_of_a_written_value_fall_away() -> None:
    x = torch.zeros(3, 3)
    x[range(3), range(3)] = torch.tensor([[1.0, 2.0, 3.0]])
    assert x.diagonal().tolist() == [1, 2, 3]
    x[[0], [1]] = torch.full((1, 1, 1), 9.0)
    assert x[0, 1] == 9
    with pytest.raises(RuntimeError, match="shape mismatch"):
        x[[0, 1]] = torch.zeros(1, 2, 2, 3)


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("shape", [(), (2, 3)])
def test_a_byte_of_no_dimensions_is_a_mask(shape: tuple) -> None:
    x = tensor(*shape)
    for value in (0, 1):
        mask = torch.tensor(value, dtype=torch.uint8)
        assert x[mask].tolist() == x[mask.bool()].tolist()
        assert x[mask].shape == (value, *shape)
    x[torch.tensor(1, dtype=torch.uint8)] = torch.zeros(1, 1, *shape, dtype=x.dtype)
    assert not x.any()


def test_each_mask_of_bytes_warns() -> None:
    mask = torch.ones(3, dtype=torch.uint8)
    with pytest.warns(UserWarning, match="uint8") as caught:
        torch.zeros(3, 4, 3)[mask, :, mask]
    assert len(caught) == 2


def test_indices_into_a_dimension_without_elements() -> None:
    with pytest.raises(IndexError, match="out of bounds for dimension with size 0"):
        torch.empty(10, 0)[:, [0, 1]]
    assert torch.empty(10, 0)[[1, 2]].shape == (2, 0)
    assert torch.empty(10, 0)[[], []].shape == (0,)


@pytest.mark.parametrize("dtype", [torch.int32, torch.float32, torch.bool])
def test_take_along_dim_takes_int64(dtype: torch.dtype) -> None:
    with pytest.raises(RuntimeError, match="dtype of indices should be Long"):
        torch.take_along_dim(tensor(3), torch.zeros(1).to(dtype), 0)


def test_numbers_in_isin() -> None:
    assert torch.isin(1, torch.tensor([1, 2])).item() is True
    assert torch.isin(torch.tensor([1, 2]), 1).tolist() == [True, False]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("value", [1j, float("nan"), float("inf"), 1e30])
@pytest.mark.parametrize("index", [torch.tensor([1]), torch.tensor([False, True]), ([0], [1])])
def test_what_is_no_integer_is_not_assigned_to_one(dtype, value, index) -> None:
    x = torch.zeros(2, 3, dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match="without overflow"):
        x[index] = value
    assert not x.any()


def test_numbers_that_lose_a_part_are_not_assigned() -> None:
    x, mask = torch.zeros(2, 3), torch.tensor([True, False])
    for value in (1j, torch.tensor(1j)):
        with pytest.raises(RuntimeError, match="type float without overflow"):
            x[mask] = value
    small = torch.zeros(3, dtype=torch.int8)
    with pytest.raises(RuntimeError, match="type int8_t without overflow"):
        small[[0, 1]] = 300
    with pytest.raises(RuntimeError, match="type int8_t without overflow"):
        small.index_fill_(0, torch.tensor([1]), torch.tensor(float("nan")))
    small[torch.tensor([True, False, True])] = torch.tensor(2.5)
    x[[1]] = float("inf")
    assert small.tolist() == [2, 0, 2] and x[1].isinf().all()


def test_bools_are_not_searched() -> None:
    x = torch.tensor([False, True])
    for call in (torch.searchsorted, lambda a, b: torch.bucketize(b, a)):
        with pytest.raises(NotImplementedError, match="'Bool'"):
            call(x, x)
        assert call(x, x[:0]).shape == (0,)
        assert call(x, torch.tensor([0.5])).tolist() == [1]
        assert call(torch.tensor([0, 1]), x).tolist() == [0, 1]


def test_index_fill_refuses_complex_numbers_for_reals() -> None:
    for x in (torch.zeros(3), torch.zeros(3, dtype=torch.bool)):
        with pytest.raises(RuntimeError, match="complex Scalar"):
            x.index_fill(0, torch.tensor([0]), 1 + 1j)
    assert torch.zeros(1, dtype=torch.complex64).index_fill(0, torch.tensor([0]), 1j).item() == 1j


def test_out_of_nonzero() -> None:
    x = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(RuntimeError, match="scalar type Long"):
        torch.nonzero(x, out=torch.empty(0))
    with pytest.raises(RuntimeError, match="as_tuple"):
        torch.nonzero(x, out=torch.empty(0, dtype=torch.int64), as_tuple=True)


@pytest.mark.parametrize("index", ADVANCED, ids=str)
def test_writing_is_numpys(index: tuple) -> None:
    if index[0] is None:
        pytest.skip("NumPy and PyTorch write through a new axis alike; covered by reading")
    for x in (tensor(3, 4, 5), tensor(5, 4, 3).permute(2, 1, 0)):
        expected = x.numpy().copy()
        values = RANDOM.standard_normal(expected[index].shape)
        expected[index] = values
        x[as_torch(index)] = torch.from_numpy(values)
        np.testing.assert_array_equal(x.numpy(), expected)
        expected[index] = 7
        x[as_torch(index)] = 7
        np.testing.assert_array_equal(x.numpy(), expected)


def test_accumulate_adds_every_time() -> None:
    x = torch.zeros(3)
    x.index_put_((torch.tensor([1, 1, 2]),), torch.tensor([1.0, 2.0, 4.0]), accumulate=True)
    assert x.tolist() == [0, 3, 4]
    y = torch.zeros(4, 2)
    y.index_add_(0, torch.tensor([3, 3]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), alpha=2)
    assert y[3].tolist() == [8, 12]
    rows = torch.randint(0, 7, (5000,))
    values = tensor(5000, 3)
    expected = np.zeros((7, 3))
    np.add.at(expected, rows.numpy(), values.numpy())
    got = torch.zeros(7, 3, dtype=torch.float64).index_add(0, rows, values)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-11, atol=1e-11)


def test_the_last_of_several_writes_stays() -> None:
    index = torch.zeros(1000, dtype=torch.int64)
    values = torch.arange(1000.0)
    assert torch.zeros(2).scatter(0, index, values)[0].item() == 999
    assert torch.zeros(2).index_put((index,), values)[0].item() == 999
    assert torch.zeros(2).index_copy(0, index, values)[0].item() == 999


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
@pytest.mark.parametrize("index_dtype", [torch.int64, torch.int32])
def test_a_0d_index_addresses_one_element(dtype: torch.dtype, index_dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 1, 0, 1]).to(dtype).requires_grad_(dtype.is_floating_point)
    at, one = torch.tensor(3, dtype=index_dtype), torch.ones((), dtype=dtype)
    assert x.gather(0, at).item() == 0 and x.gather(0, at - 1).item() == 1
    expected = [0, 1, 1, 1, 1]
    calls = [
        x.scatter(0, at, 1),
        x.scatter(0, at, one[None]),
        x.scatter_add(0, at, one),
        x.detach().scatter(0, at, 1, reduce="add"),
        x.detach().scatter(0, at, one[None], reduce="add"),
        *(x.scatter_reduce(0, at, one, how) for how in ("sum", "amax")),
        *(
            x.scatter_reduce(0, at, one, how, include_self=False)
            for how in ("sum", "prod", "mean", "amax", "amin")
        ),
    ]
    for y in calls:
        assert y.tolist() == expected
    if dtype.is_floating_point:
        x.gather(0, at).backward()
        assert x.grad is not None and x.grad.tolist() == [0, 0, 0, 1, 0]


def test_a_0d_tensor_has_one_element_along_dim_0() -> None:
    x, index = torch.tensor(7.0), torch.zeros(4, dtype=torch.int64)
    assert x.gather(0, index).tolist() == [7] * 4
    assert x.scatter_add(0, index, torch.ones(4)).item() == 11
    assert x.scatter_reduce(0, index[0], torch.tensor(9.0), "mean").item() == 8


X = torch.arange(3.0)
M = torch.zeros(2, 3)
FIVE = torch.tensor([5])
F = torch.nn.functional
BAD = [
    (
        lambda x: x.gather(0, FIVE),
        RuntimeError,
        "index 5 is out of bounds for dimension 0 with size 3",
    ),
    (lambda x: x.gather(0, -FIVE), RuntimeError, "index -5 is out of bounds"),
    (lambda x: x.scatter_(0, torch.tensor([0, 5]), 1.0), RuntimeError, "index 5 is out of bounds"),
    (
        lambda x: x.scatter_add_(0, torch.tensor([0, 5]), torch.ones(2)),
        RuntimeError,
        "index 5 is out of bounds",
    ),
    (lambda x: x.index_select(0, FIVE), IndexError, "index out of range in self"),
    (
        lambda x: x.index_add_(0, torch.tensor([0, 5]), torch.ones(2)),
        IndexError,
        "index out of range in self",
    ),
    (
        lambda x: M.clone().index_add_(0, torch.tensor([0, 5]), torch.ones(2, 3)),
        RuntimeError,
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    (
        lambda x: x.index_add_(0, torch.tensor([0]), torch.tensor(1.0)),
        RuntimeError,
        "source tensor shape must match self tensor shape",
    ),
    (
        lambda x: x.index_add_(0, torch.tensor([0, 1]), torch.tensor(1.0)),
        IndexError,
        "tensor has no dimensions",
    ),
    (
        lambda x: x.index_copy_(0, torch.tensor([0]), torch.ones(2)),
        IndexError,
        "should be equal to source.size",
    ),
    (lambda x: x.put_(torch.tensor([0]), torch.ones(2)), IndexError, "same number of elements"),
    (lambda x: M.index_select(1, FIVE), RuntimeError, "INDICES element is out of DATA bounds"),
    (lambda x: M.index_select(0, FIVE), IndexError, "index out of range in self"),
    (
        lambda x: x.sum().take_along_dim(torch.tensor(0), 0),
        IndexError,
        "tensor has no dimensions",
    ),
    (lambda x: F.embedding_bag(FIVE[None], M), RuntimeError, "found idx to be 5"),
    (lambda x: F.embedding_bag(FIVE[None], M, mode="max"), RuntimeError, "found idx to be 5"),
    (lambda x: x.index_fill_(0, torch.tensor([0, 5]), 1.0), IndexError, "index 5 is out of bounds"),
    (
        lambda x: x.index_copy_(0, torch.tensor([0, 5]), torch.ones(2)),
        IndexError,
        "index 5 is out of bounds",
    ),
    (lambda x: x.take(FIVE), IndexError, "tried to access index 5 on a tensor of 3 elements"),
    (lambda x: x.put_(torch.tensor([0, 5]), torch.ones(2)), IndexError, "tried to access index 5"),
    (lambda x: x[FIVE], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    (
        lambda x: x.__setitem__(torch.tensor([0, 2**40]), 1.0),
        IndexError,
        "index 1099511627776 is out of bounds",
    ),
    (
        lambda x: M[torch.zeros(4).bool()],
        IndexError,
        r"The shape of the mask \[4\] at index 0 does not match",
    ),
    (
        lambda x: M[torch.tensor([0, 1]), torch.tensor([0, 1, 2])],
        IndexError,
        "could not be broadcast together",
    ),
    (
        lambda x: M.index_put((torch.tensor([0]),), torch.zeros(4)),
        RuntimeError,
        "shape mismatch: value tensor of shape",
    ),
    (
        lambda x: x.scatter(0, torch.tensor([0]), x.long()),
        RuntimeError,
        "Expected self.dtype to be equal to src.dtype",
    ),
    (lambda x: M.gather(0, FIVE), RuntimeError, "must have the same number of dimensions"),
    (
        lambda x: x.scatter_reduce(0, torch.tensor([0]), x, "foo"),
        RuntimeError,
        "reduce argument must be either sum",
    ),
    (lambda x: x.masked_select(torch.ones(3)), RuntimeError, "expected BoolTensor for mask"),
    (
        lambda x: x.masked_scatter(torch.ones(3).bool(), x[:1]),
        RuntimeError,
        "Number of elements of source < number of ones",
    ),
    (lambda x: F.embedding(FIVE, M), IndexError, "index out of range in self"),
    (
        lambda x: F.embedding(torch.tensor([1.0]), M),
        RuntimeError,
        "Expected tensor for argument #1 'indices'",
    ),
    (lambda x: F.one_hot(torch.tensor([-1])), RuntimeError, "Class values must be non-negative"),
    (lambda x: F.one_hot(FIVE, 3), RuntimeError, "Class values must be smaller than num_classes"),
    (lambda x: torch.bincount(torch.tensor([-1])), RuntimeError, "non-negative integral inputs"),
    (
        lambda x: x.repeat_interleave(torch.tensor([-1, 2, 1])),
        RuntimeError,
        "repeats can not be negative",
    ),
    (
        lambda x: F.cross_entropy(M, torch.tensor([0, 10])),
        IndexError,
        "Target 10 is out of bounds.",
    ),
    (lambda x: F.nll_loss(M, torch.tensor([0, -1])), IndexError, "Target -1 is out of bounds."),
    (lambda x: F.cross_entropy(M, torch.tensor([0])), ValueError, "Expected input batch_size"),
    (
        lambda x: F.cross_entropy(M, torch.tensor([0.0, 1.0])),
        RuntimeError,
        "expected target dtype to be Long or Byte",
    ),
]


@pytest.mark.parametrize("call, kind, message", BAD)
def test_bad_indices_raise_and_write_nothing(
    call: object, kind: type[Exception], message: str
) -> None:
    x = X.clone()
    with pytest.raises(kind, match=message):
        call(x)  # type: ignore[operator]
    assert x.tolist() == [0, 1, 2]


@pytest.mark.parametrize("places", ["spread", "one", "two"])
def test_long_lines_take_their_values_in_order(places: str) -> None:
    """Whatever thread writes a line, it adds up, or keeps, what one thread does."""
    random = np.random.default_rng(0)
    lines, n = 200, 1500
    index = {
        "spread": random.integers(0, 90, lines),
        "one": np.full(lines, 7),
        "two": np.where(np.arange(lines) % 3, 4, 88),
    }[places]
    source = random.standard_normal((lines, n)).astype(np.float32)
    added, kept = np.zeros((90, n), np.float32), np.zeros((90, n), np.float32)
    for i, line in zip(index, source, strict=True):
        added[i] += line
        kept[i] = line
    threads = torch.get_num_threads()
    try:
        for count in (1, 2, 3):
            torch.set_num_threads(count)
            i, values = torch.from_numpy(index), torch.from_numpy(source)
            got = torch.zeros(90, n).index_add_(0, i, values)
            assert np.array_equal(got.numpy(), added)
            got = torch.zeros(90, n).index_copy_(0, i, values)
            assert np.array_equal(got.numpy(), kept)
    finally:
        torch.set_num_threads(threads)


def test_a_target_that_overlaps_itself() -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.zeros(1).expand(3).scatter_(0, torch.tensor([0]), 1.0)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        x = torch.zeros(1).expand(3)
        x.index_put_((torch.tensor([0]),), torch.ones(1), accumulate=True)


@pytest.mark.parametrize("bits", [16, 32, 64])
@pytest.mark.parametrize("spread", [1, 7])
def test_unique_of_larger_unsigned_integers(bits: int, spread: int) -> None:
    """Near each other they are counted, else sorted; half of them have the sign's bit set."""
    middle = 1 << (bits - 1)
    numbers = np.random.default_rng(0).integers(-20, 20, (6, 10)) * spread ** (bits // 8)
    x = (numbers.astype(object) + middle).astype(f"uint{bits}")
    values, inverse, counts = torch.unique(
        torch.from_numpy(x), return_inverse=True, return_counts=True
    )
    expected = np.unique(x, return_inverse=True, return_counts=True)
    assert str(values.dtype) == f"torch.uint{bits}"
    for found, truth in zip((values, inverse, counts), expected, strict=True):
        assert np.array_equal(found.numpy(), truth.reshape(tuple(found.shape)))


def test_unique_refuses_what_has_no_order() -> None:
    for dtype in (torch.complex64, torch.float8_e4m3fn):
        with pytest.raises(NotImplementedError, match="not implemented"):
            torch.unique(torch.ones(3).to(dtype))


def test_nonzero_and_unique() -> None:
    x = torch.from_numpy((RANDOM.random((5, 6, 7)) < 0.3).astype(np.float32))
    for t in (x, x.transpose(0, 2), x[:, ::2]):
        np.testing.assert_array_equal(t.nonzero().numpy(), np.argwhere(t.numpy()))
        for mine, theirs in zip(t.nonzero(as_tuple=True), t.numpy().nonzero(), strict=True):
            np.testing.assert_array_equal(mine.numpy(), theirs)
    assert torch.nonzero(torch.tensor(3.0)).shape == (1, 0)
    big = torch.from_numpy(RANDOM.integers(0, 50, (70, 90)))
    values, inverse, counts = torch.unique(big, return_inverse=True, return_counts=True)
    expected = np.unique(big.numpy(), return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values.numpy(), expected[0])
    np.testing.assert_array_equal(inverse.numpy(), expected[1].reshape(70, 90))
    np.testing.assert_array_equal(counts.numpy(), expected[2])
    rows = torch.from_numpy(RANDOM.integers(0, 2, (40, 3)))
    for dim in (0, 1):
        mine = torch.unique(rows, dim=dim, return_inverse=True, return_counts=True)
        theirs = np.unique(rows.numpy(), axis=dim, return_inverse=True, return_counts=True)
        for a, b in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(a.numpy().ravel(), b.ravel())
    run, where, count = torch.unique_consecutive(torch.tensor([1, 1, 2, 2, 2, 1]), True, True)
    assert (run.tolist(), where.tolist(), count.tolist()) == (
        [1, 2, 1],
        [0, 0, 1, 1, 1, 2],
        [2, 3, 1],
    )


def test_sorting_is_stable_and_puts_nan_last() -> None:
    for n in (5, 300, 20_000):
        values = RANDOM.integers(0, 50, n)
        for dtype in (np.int8, np.int64, np.float32, np.float64):
            x = torch.from_numpy(values.astype(dtype))
            result = torch.sort(x, stable=True)
            np.testing.assert_array_equal(
                result.indices.numpy(), np.argsort(x.numpy(), kind="stable")
            )
            down = torch.sort(x, descending=True, stable=True)
            np.testing.assert_array_equal(down.indices.numpy(), np.argsort(-values, kind="stable"))
    nan = float("nan")
    x = torch.tensor([nan, 1.0, -float("inf"), float("inf"), -0.0, 0.0])
    assert x.sort().indices.tolist() == [2, 4, 5, 1, 3, 0]
    assert x.sort(descending=True).indices.tolist() == [0, 3, 1, 4, 5, 2]
    assert x.topk(2).indices.tolist() == [0, 3]
    assert x.nanmedian().item() == 0
    big = torch.from_numpy(RANDOM.standard_normal(100_000).astype(np.float32))
    np.testing.assert_array_equal(big.topk(7).values.numpy(), np.sort(big.numpy())[::-1][:7])
    np.testing.assert_array_equal(
        big.topk(7, largest=False).values.numpy(), np.sort(big.numpy())[:7]
    )
    np.testing.assert_array_equal(big.kthvalue(500).values.item(), np.sort(big.numpy())[499])


def test_embedding_gradient() -> None:
    weight = tensor(6, 4).requires_grad_()
    index = torch.tensor([[1, 2, 1], [5, 2, 0]])
    out = F.embedding(index, weight, padding_idx=2)
    g = tensor(2, 3, 4)
    out.backward(g)
    expected = np.zeros((6, 4))
    np.add.at(expected, index.numpy(), g.numpy())
    expected[2] = 0
    np.testing.assert_allclose(weight.grad.numpy(), expected, rtol=1e-12)
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    F.embedding(torch.tensor([0, 1]), table, max_norm=1.0)
    np.testing.assert_allclose(table.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-5)


def test_search() -> None:
    edges = np.sort(RANDOM.standard_normal(20))
    values = RANDOM.standard_normal((30, 4))
    for right in (False, True):
        got = torch.searchsorted(torch.from_numpy(edges), torch.from_numpy(values), right=right)
        np.testing.assert_array_equal(
            got.numpy(), np.searchsorted(edges, values, side="right" if right else "left")
        )
    sample = RANDOM.standard_normal(500).astype(np.float32)
    got = torch.histc(torch.from_numpy(sample), bins=10, min=-2, max=2)
    np.testing.assert_array_equal(got.numpy(), np.histogram(sample, bins=10, range=(-2, 2))[0])
    counts = RANDOM.integers(0, 9, 100)
    np.testing.assert_array_equal(
        torch.bincount(torch.from_numpy(counts)).numpy(), np.bincount(counts)
    )
    for q in (0.0, 0.25, 0.9):
        np.testing.assert_allclose(
            torch.quantile(torch.from_numpy(values), q, dim=0).numpy(), np.quantile(values, q, 0)
        )


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("sizes", [(2,), (2, 3), (2, 3, 4)])
def test_meshgrid_has_numpys_order(indexing, sizes):
    axes = [np.arange(n) for n in sizes]
    ours = torch.meshgrid([torch.arange(n) for n in sizes], indexing=indexing)
    for grid, expected in zip(ours, np.meshgrid(*axes, indexing=indexing)):
        assert grid.tolist() == expected.tolist()


def test_searches_and_comparisons_promote():
    oracle = pytest.importorskip("torch")
    for t in (torch, oracle):
        floats, ints = t.tensor([1.5, 2.5]), t.tensor([1, 2])
        assert t.searchsorted(floats, ints).tolist() == [0, 1]
        assert t.bucketize(floats, ints).tolist() == [1, 2]
        assert t.searchsorted(floats.double(), floats, right=True).tolist() == [1, 2]
        assert t.equal(ints, ints.double()) and not t.equal(ints, floats)


HUGE = [-(2**40), -(2**63), -65, 64, 2**40, 2**63 - 1]
# What writes `x` [64, 300] in place by an index tensor `i` [64, 300], or by its first row `v`.
WRITES = {
    "scatter_": lambda x, i, v, y: x.scatter_(0, i, y),
    "scatter_ of a number": lambda x, i, v, y: x.scatter_(0, i, 2.0),
    "scatter_ that multiplies": lambda x, i, v, y: x.scatter_(0, i, 2.0, reduce="multiply"),
    "scatter_ that adds": lambda x, i, v, y: x.scatter_(0, i, y, reduce="add"),
    "scatter_, transposed": lambda x, i, v, y: x.scatter_(0, i.t().contiguous().t(), y),
    "scatter_ of int32": lambda x, i, v, y: x.scatter_(0, i.clamp(-(2**31), 2**31 - 1).int(), y),
    "scatter_add_": lambda x, i, v, y: x.scatter_add_(0, i, y),
    "scatter_add_ in one dimension": lambda x, i, v, y: x[:, 0].scatter_add_(0, v, v.float()),
    "scatter_reduce_": lambda x, i, v, y: x.scatter_reduce_(0, i, y, "amax"),
    "scatter_reduce_ of means": lambda x, i, v, y: x.scatter_reduce_(
        0, i, y, "mean", include_self=False
    ),
    "scatter with out=": lambda x, i, v, y: torch.scatter(x.clone(), 0, i, y, out=x),
    "gather with out=": lambda x, i, v, y: torch.gather(y, 0, i, out=x),
    "index_add_": lambda x, i, v, y: x.index_add_(0, v, torch.ones(len(v), 300)),
    "index_copy_": lambda x, i, v, y: x.index_copy_(0, v, torch.ones(len(v), 300)),
    "index_fill_": lambda x, i, v, y: x.index_fill_(0, v, 2.0),
    "index_put_": lambda x, i, v, y: x.index_put_((v,), torch.ones(300)),
    "index_put_ that adds": lambda x, i, v, y: x.index_put_((v,), torch.ones(300), accumulate=True),
    "x[v] = y": lambda x, i, v, y: x.__setitem__(v, 2.0),
    "x[v, v] = y": lambda x, i, v, y: x.__setitem__((v, v.clamp(0, 63)), 2.0),
    "put_": lambda x, i, v, y: x.put_(
        torch.cat([i.view(-1), v * 2**20]), torch.ones(len(v) + 19200)
    ),
    "embedding with max_norm": lambda x, i, v, y: torch.nn.functional.embedding(v, x, max_norm=0.1),
    "embedding_bag with max_norm": lambda x, i, v, y: torch.nn.functional.embedding_bag(
        v, x, torch.zeros(1, dtype=torch.long), max_norm=0.1
    ),
    "offsets of embedding_bag": lambda x, i, v, y: torch.nn.functional.embedding_bag(
        v.clamp(0, 63), x, v.where(v != 64, 65), max_norm=0.1
    ),
}


@pytest.mark.parametrize("bad", HUGE)
@pytest.mark.parametrize("name", WRITES)
def test_a_bad_index_leaves_the_destination_alone(name: str, bad: int) -> None:
    for k in (63, 300 * 64 - 1):  # at the end, where everything else would have been written before
        x = torch.ones(64, 300)
        i = torch.zeros(64, 300, dtype=torch.long)
        i.view(-1)[k] = bad
        v = i.view(-1)[k - 63 : k + 1].clone()
        before = x.numpy().copy()
        with pytest.raises((IndexError, RuntimeError, ValueError)):
            WRITES[name](x, i, v, torch.full((64, 300), 2.0))
        np.testing.assert_array_equal(x.numpy(), before)


N = 64
# What only reads by `v` [64], whose last place is bad for a size of up to 64.
READS = {
    "index_select": lambda x, v: torch.index_select(x, 0, v),
    "x[v]": lambda x, v: x[v],
    "gather": lambda x, v: torch.gather(x, 0, v.unsqueeze(1)),
    "take": lambda x, v: torch.take(x[:, 0], v),
    "embedding": lambda x, v: torch.nn.functional.embedding(v, x),
    "embedding_dense_backward": lambda x, v: torch.ops.aten.embedding_dense_backward(
        x, v, N, -1, False
    ),
    "nll_loss": lambda x, v: torch.nn.functional.nll_loss(x, v),
    "cross_entropy": lambda x, v: torch.nn.functional.cross_entropy(x, v),
    "multi_margin_loss": lambda x, v: torch.nn.functional.multi_margin_loss(x, v),
    "one_hot": lambda x, v: torch.nn.functional.one_hot(v, N),
    "max_unpool1d": lambda x, v: torch.nn.functional.max_unpool1d(x[:1, None], v[None, None], 1),
    "max_unpool2d": lambda x, v: torch.nn.functional.max_unpool2d(
        x[:1, None, None], v[None, None, None], 1
    ),
    "searchsorted": lambda x, v: torch.searchsorted(x[0], x[1], sorter=v),
    "lengths of ctc_loss": lambda x, v: torch.nn.functional.ctc_loss(
        torch.zeros(9, N, 5), torch.ones(N, 5, dtype=torch.long), v * 0 + 9, v
    ),
    "input lengths of ctc_loss": lambda x, v: torch.nn.functional.ctc_loss(
        torch.zeros(9, N, 5), torch.ones(N, 5, dtype=torch.long), v, v * 0 + 1
    ),
    "targets of ctc_loss": lambda x, v: torch.nn.functional.ctc_loss(
        torch.zeros(9, N, 5), v.unsqueeze(1), v * 0 + 9, v * 0 + 1
    ),
}


@pytest.mark.parametrize("bad", HUGE)
@pytest.mark.parametrize("name", READS)
def test_a_bad_index_is_read_by_nobody(name: str, bad: int) -> None:
    v = torch.zeros(N, dtype=torch.long)
    v[-1] = bad
    with pytest.raises((IndexError, RuntimeError, ValueError)):
        READS[name](torch.zeros(N, N), v)


def test_indices_lie_dimension_by_dimension_as_in_pytorch() -> None:
    oracle = pytest.importorskip("torch")
    data = np.random.default_rng(3).integers(0, 3, (3, 4, 5))
    for library in (torch, oracle):
        x = library.tensor(data)
        found = library.nonzero(x)
        assert found.stride() == (1, found.size(0))
        np.testing.assert_array_equal(found.numpy(), np.argwhere(data))
        assert [i.stride() for i in library.nonzero(x, as_tuple=True)] == [(1,)] * 3
    for dim in range(3):
        for name in ("unique", "unique_consecutive"):
            ours, theirs = (getattr(t, name)(t.tensor(data), dim=dim) for t in (torch, oracle))
            assert ours.stride() == theirs.stride()
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
