"""Operators whose rules are functions of src/ops/batching: the same as a loop over the samples, as
many calls for many samples as for a few, and an index out of range of its sample raises."""

import numpy as np
import pytest

import taeda
from taeda import Tensor, nn
from taeda.nn import functional as F
from taeda.utils._python_dispatch import TorchDispatchMode

LSTM, GRU = nn.LSTM(3, 4), nn.GRU(3, 4)


def integers(*sizes: int, high: int) -> Tensor:
    return taeda.randint(0, high, sizes)


def bags(weight: Tensor, indices: Tensor, starts: Tensor, scales: Tensor) -> Tensor:
    return taeda._bag_sum(weight, indices, starts, scales)


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool) -> Tensor:
    return x.put(index, source, accumulate)


def transposed_put(x: Tensor, index: Tensor, source: Tensor) -> Tensor:
    columns = (x + 0 * (source.sum() + index.sum())).t().clone().t()  # with every batch
    return columns.put_(index, source)


# What is called, and what makes the arguments of a batch of n samples; the booleans say which of
# them have a batch.
CASES = {
    "take": (taeda.take, lambda n: (taeda.randn(n, 3, 4), integers(n, 2, 3, high=24) - 12)),
    "put_": (
        lambda x, i, s: put(x, i, s, False),
        lambda n: (taeda.randn(n, 3, 4), taeda.stack([taeda.randperm(12)[:5] for _ in range(n)])
                   - 5, taeda.randn(n, 5)),
    ),
    "put_, accumulating": (
        lambda x, i, s: put(x, i, s, True),
        lambda n: (taeda.randn(n, 3, 4), integers(n, 5, high=12), taeda.randn(n, 5)),
    ),
    "put_ into columns": (
        transposed_put,
        lambda n: (taeda.randn(n, 3, 4), taeda.stack([taeda.randperm(12)[:5] for _ in range(n)]),
                   taeda.randn(n, 5)),
    ),
    "masked_scatter": (
        taeda.masked_scatter,
        lambda n: (taeda.randn(n, 3, 4), taeda.rand(n, 3, 4) > 0.5, taeda.randn(n, 12)),
    ),
    "masked_scatter of a row": (
        taeda.masked_scatter,
        lambda n: (taeda.randn(n, 3, 4), taeda.rand(n, 4) > 0.5, taeda.randn(n, 4, 3)),
    ),
    "embedding": (
        lambda w, i: F.embedding(i, w),
        lambda n: (taeda.randn(n, 5, 2), integers(n, 4, high=5)),
    ),
    "embedding_bag": (
        lambda w, i: F.embedding_bag(i, w),
        lambda n: (taeda.randn(n, 5, 2), integers(n, 4, 3, high=5)),
    ),
    "bags of several lengths": (
        bags,
        lambda n: (taeda.randn(n, 5, 2), integers(n, 6, high=5),
                   taeda.tensor([[0, 2, 2, 6], [0, 0, 5, 5]] * (n // 2)), taeda.randn(n, 6)),
    ),
    "searchsorted": (
        taeda.searchsorted,
        lambda n: (taeda.randn(n, 5).sort().values, taeda.randn(n, 3, 4)),
    ),
    "searchsorted in rows": (
        taeda.searchsorted,
        lambda n: (taeda.randn(n, 2, 5).sort().values, taeda.randn(n, 2, 3)),
    ),
    "fft": (lambda x: taeda.fft.rfft2(x).abs(), lambda n: (taeda.randn(n, 3, 4),)),
    "linspace": (lambda a, b: taeda.linspace(a, b, 5), lambda n: (taeda.randn(n), taeda.rand(n))),
    "linspace, one": (lambda a: taeda.linspace(a, 2, 1), lambda n: (taeda.randn(n),)),
    "linspace from a number": (lambda b: taeda.linspace(1j, b, 4), lambda n: (taeda.randn(n),)),
    "linspace of integers": (
        lambda a, b: taeda.linspace(a, b, 4, dtype=taeda.int64),
        lambda n: (taeda.randn(n) * 9, taeda.randn(n) * 9),
    ),
    "logspace": (
        lambda a, b: taeda.logspace(a, b, 6, 2.0, dtype=taeda.float64),
        lambda n: (taeda.randn(n), taeda.rand(n)),
    ),
    "LSTM": (lambda x: LSTM(x)[0], lambda n: (taeda.randn(n, 5, 2, 3),)),
    "GRU": (lambda x: GRU(x)[1], lambda n: (taeda.randn(n, 5, 2, 3),)),
}  # fmt: skip


def choices(count):
    """in_dims: a batch in all arguments, in the first or in the last alone."""
    chosen = [(0,) * count]
    if count > 1:
        chosen += [(0,) + (None,) * (count - 1), (None,) * (count - 1) + (0,)]
    return chosen


def loop(function, in_dims, tensors):
    given = [[t[i] if d == 0 else t[0] for t, d in zip(tensors, in_dims)] for i in range(2)]
    return taeda.stack([function(*args) for args in given])


@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_what_its_samples_give(name):
    function, make = CASES[name]
    tensors = make(2)
    for in_dims in choices(len(tensors)):
        given = [t if d == 0 else t[0] for t, d in zip(tensors, in_dims)]
        got, expected = taeda.vmap(function, in_dims)(*given), loop(function, in_dims, tensors)
        assert got.dtype is expected.dtype
        np.testing.assert_allclose(
            got.detach().numpy(), expected.detach().numpy(), rtol=2e-6, atol=2e-6, err_msg=in_dims
        )


class Calls(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", CASES)
def test_more_samples_are_no_more_calls(name):
    function, make = CASES[name]
    counts = []
    for n in (2, 10):
        tensors = make(n)
        with Calls() as calls, taeda.no_grad():
            taeda.vmap(function)(*tensors)
        counts.append(calls.count)
    assert counts[0] == counts[1] > 0


SPACES = {
    "linspace": lambda a, b, dtype: taeda.linspace(a, b, 7, dtype=dtype),
    "logspace": lambda a, b, dtype: taeda.logspace(a, b, 7, 3.0, dtype=dtype),
    "linspace to a number": lambda a, b, dtype: taeda.linspace(a, 2, 9, dtype=dtype),
    "nested": lambda a, b, dtype: taeda.vmap(lambda c: taeda.linspace(a, c, 5, dtype=dtype))(
        taeda.stack([a, b])
    ),
}


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("dtype", [taeda.float32, taeda.float64, taeda.int32, taeda.complex64])
def test_spaces_of_samples_have_the_bits_of_a_loop(name, dtype):
    space = SPACES[name]
    a, b = taeda.randn(40), taeda.randn(40) * 3
    got = taeda.vmap(lambda a, b: space(a, b, dtype))(a, b)
    expected = [
        taeda.stack([taeda.linspace(x, y, 5, dtype=dtype) for y in (x, z)])
        if name == "nested"
        else space(x, z, dtype)
        for x, z in zip(a, b)
    ]
    assert taeda.equal(got, taeda.stack(expected))


GRADIENTS = ["take", "put_", "put_, accumulating", "masked_scatter", "embedding", "fft"]


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_samples_are_those_of_a_loop(name):
    function, make = CASES[name]
    first, *others = make(2)

    def gradient(*tensors):
        return taeda.func.grad(lambda *t: function(*t).square().sum())(*tensors)

    got = taeda.vmap(gradient)(first, *others)
    expected = loop(gradient, (0,) * (1 + len(others)), [first, *others])
    np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)


def test_gradients_of_bags_are_those_of_a_loop():
    given = CASES["bags of several lengths"][1](4)

    def gradients(weight, indices, starts, scales):
        loss = lambda w, s: bags(w, indices, starts, s).square().sum()  # noqa: E731
        return taeda.func.grad(loss, (0, 1))(weight, scales)

    got = taeda.vmap(gradients)(*given)
    for i in range(4):
        expected = gradients(*(t[i] for t in given))
        for mine, theirs in zip(got, expected):
            np.testing.assert_allclose(mine[i].numpy(), theirs.numpy(), rtol=1e-5, atol=1e-6)


OUT_OF_RANGE = {
    "take": lambda i: taeda.vmap(taeda.take)(taeda.zeros(2, 4), i),
    "put_": lambda i: taeda.vmap(Tensor.put)(taeda.zeros(2, 4), i, taeda.ones(2, 1)),
    "embedding": lambda i: taeda.vmap(F.embedding)(i, taeda.zeros(2, 4, 3)),
    "embedding_bag": lambda i: taeda.vmap(F.embedding_bag)(i[:, None], taeda.zeros(2, 4, 3)),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_an_index_out_of_range_of_its_sample_raises(name):
    OUT_OF_RANGE[name](taeda.tensor([[3], [0]]))
    with pytest.raises((IndexError, RuntimeError), match=r"out of|range|bounds|num_embeddings"):
        OUT_OF_RANGE[name](taeda.tensor([[4], [0]]))  # the next sample's first row


def test_a_source_that_is_too_short_raises():
    mask = taeda.tensor([[True, False, True], [True, True, True]])
    with pytest.raises((IndexError, RuntimeError), match=r"out of|ones in mask"):
        taeda.vmap(taeda.masked_scatter)(taeda.zeros(2, 3), mask, taeda.ones(2, 2))


def test_what_has_no_batch_is_not_written_with_one():
    with pytest.raises(RuntimeError, match="not possible because"):
        taeda.vmap(Tensor.put_, (None, 0, 0))(
            taeda.zeros(4), integers(2, 1, high=4), taeda.ones(2, 1)
        )
