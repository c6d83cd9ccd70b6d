"""Reductions on a simulated device, by its kernels: the values of the CPU's operators."""

import numpy as np
import pytest
from tests.device.simulated.by_kernels import (
    FLOATING,
    NUMBERS,
    REAL,
    agree,
    layouts,
    same,
    values,
)

import taeda
from taeda import _C


@pytest.fixture(autouse=True)
def no_fallback():
    _C._set_fallback("refuse")
    yield
    _C._set_fallback("warn")


def hash_of(x, dim, keepdim):
    return taeda.hash_tensor(x, () if dim is None else dim, keepdim=keepdim).view(taeda.int64)


DIMS = [None, 0, 1, (0, 2), (1, 2), (0, 1, 2), -1]
INEXACT = [*FLOATING, "complex64", "complex128"]
OVER_DIMS = {
    "sum": (taeda.sum, NUMBERS),
    "mean": (taeda.mean, INEXACT),
    "nansum": (taeda.nansum, REAL),
    "amax": (taeda.amax, REAL),
    "amin": (taeda.amin, REAL),
    "count_nonzero": (lambda x, dim, keepdim: taeda.count_nonzero(x, dim), NUMBERS),
    "any": (taeda.any, NUMBERS),
    "all": (taeda.all, NUMBERS),
    "var": (taeda.var, FLOATING),
    "std": (taeda.std, FLOATING),
    "logsumexp": (taeda.logsumexp, FLOATING),
    "hash_tensor": (hash_of, REAL),
}
OVER_ONE = {
    "max": (taeda.max, REAL),
    "min": (taeda.min, REAL),
    "argmax": (taeda.argmax, [d for d in REAL if d != "bool"]),
    "argmin": (taeda.argmin, [d for d in REAL if d != "bool"]),
    "prod": (taeda.prod, NUMBERS),
}


@pytest.mark.parametrize("name", OVER_DIMS)
def test_over_any_dimensions(name):
    call, dtypes = OVER_DIMS[name]
    for dtype in dtypes:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for dim in DIMS:
                if dim is None and name in ("amax", "amin", "logsumexp"):
                    continue
                for keepdim in (False, True):
                    agree(
                        lambda t, d=dim, k=keepdim: call(t, dim=d, keepdim=k),
                        x,
                        what=f"{name} {dtype} {layout} {dim} {keepdim}",
                    )


@pytest.mark.parametrize("name", OVER_ONE)
def test_over_one_dimension(name):
    call, dtypes = OVER_ONE[name]
    for dtype in dtypes:
        for layout, x in layouts(dtype, (3, 4, 5)).items():
            for dim in range(3):
                agree(lambda t, d=dim: call(t, dim=d), x, what=f"{name} {dtype} {layout} {dim}")


@pytest.mark.parametrize("n", [1, 31, 33, 1000, 1025, 40000])
def test_rows_of_any_length(n):
    for dtype in ("float32", "float16", "int32"):
        x = values(dtype, (3, n))
        for call in (taeda.sum, taeda.amax, taeda.argmin):
            agree(lambda t, c=call: c(t, dim=1), x, what=f"{dtype} {n}")
            agree(lambda t, c=call: c(t, dim=0), x, what=f"{dtype} {n} columns")
    x = values("float32", (2, n))
    if n > 1:
        agree(lambda t: taeda.var(t, dim=1), x, what=f"{n}")
    agree(lambda t: taeda.logsumexp(t, dim=1), x, what=f"{n}")


# Of few results, each of which is made of parts that another launch joins.
IN_PARTS = {
    **{name: row for name, row in OVER_DIMS.items() if name not in ("mean", "any", "all", "std")},
    "prod": (taeda.prod, NUMBERS),
    "norm": (lambda x, dim, keepdim: taeda.linalg.vector_norm(x, 2, dim), INEXACT),
    "largest": (lambda x, dim, keepdim: taeda.linalg.vector_norm(x, float("inf"), dim), INEXACT),
}


@pytest.mark.parametrize("name", IN_PARTS)
def test_long_rows_are_reduced_in_parts(name):
    call, dtypes = IN_PARTS[name]
    for dtype in dtypes:
        x = values(dtype, (2, 9000))
        if name == "prod" and dtype in INEXACT:  # near 1
            x = x / x.abs().clamp_min(1e-3)
        for dim in (0, 1):
            rows = x if dim else x.t().contiguous()
            agree(lambda t, d=dim: call(t, dim=d, keepdim=False), rows, what=f"{dtype} {dim}")


@pytest.mark.parametrize("order", [0, 1, 2, float("inf"), -float("inf")])
def test_norms(order):
    for dtype in INEXACT:
        for layout, x in layouts(dtype, (3, 4)).items():
            for dim in (None, 0, 1):
                agree(
                    lambda t, d=dim: taeda.linalg.vector_norm(t, order, dim=d),
                    x,
                    what=f"{order} {dtype} {layout} {dim}",
                )


def test_sums_by_another_type():
    x = values("int32", (7, 9))
    agree(lambda t: t.sum(0, dtype=taeda.float64), x, what="float64")
    agree(lambda t: t.bool().sum(1), x, what="bool")
    agree(lambda t: t.half().sum(1, dtype=taeda.float32), x, what="half")
    agree(lambda t: t.nansum(1, dtype=taeda.complex64), x, what="complex64")


def test_nan_and_infinity():
    x = taeda.tensor([[1.0, float("nan"), 3.0], [float("inf"), 2.0, -float("inf")]])
    for call in (taeda.sum, taeda.nansum, taeda.amax, taeda.amin, taeda.argmax, taeda.logsumexp):
        agree(lambda t, c=call: c(t, dim=1), x, what=str(call))
        agree(lambda t, c=call: c(t, dim=0), x, what=str(call))


def test_nothing_to_reduce():
    x = taeda.empty(3, 0)
    for call in (taeda.sum, taeda.prod, taeda.any, taeda.all):
        agree(lambda t, c=call: c(t, dim=1), x, what=str(call))
        agree(lambda t, c=call: c(t, dim=0), x, what=str(call))


def test_the_first_of_equal_values_is_named():
    x = taeda.zeros(5, 2000)
    x[:, 3::7] = 1
    agree(lambda t: t.max(1), x)
    agree(lambda t: t.argmax(), x)
    assert x.cuda().argmax(1).tolist() == [3] * 5


def test_large_sums_have_the_same_bits_in_every_order(simulator):
    x = values("float32", (300000,)).cuda()
    bits = set()
    for seed in range(5):
        simulator.schedule(seed)
        bits.add(x.sum().item())
    assert len(bits) == 1
    expected = float(x.cpu().numpy().astype(np.float64).sum())
    assert abs(bits.pop() - expected) < 1e-3


def test_a_reduction_waits_for_nothing(simulator, late):
    x = values("float32", (64, 300)).cuda()
    x.softmax(1).sum(0).std()  # the kernels' first use loads them
    before = simulator.count("synchronizations")
    y = x.softmax(1).sum(0).std()
    assert simulator.count("synchronizations") == before
    same(y, x.cpu().softmax(1).sum(0).std(), "softmax, sum, std")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 2.5, float("inf")])
def test_distances_of_all_pairs(p, dtype):
    x = values(dtype, (23, 5))
    x[3, 2], x[4, 1] = float("nan"), float("inf")
    for given in (x, x.t(), x[:2], x[:1]):
        agree(lambda x: taeda.pdist(x, p), given)
        agree(lambda x: taeda.cdist(x, x[:1], p), given)
    y = values(dtype, (2, 3, 4, 5))
    agree(lambda x, y: taeda.cdist(x, y, p), x, y)
    agree(lambda x, y: taeda.cdist(x, y, p), y.transpose(1, 2), y[:1, :1])
