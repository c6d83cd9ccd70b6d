"""What NumPy has an equal for among the cases of kernel_cases: the third column of that table.

Sizes, contents and results are those of the case of the same name. NumPy computes on one thread,
but for products.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Run = Callable[[], object]
MEGA = 1 << 20
CASES: dict[str, Callable[[], Run]] = {}
random = np.random.default_rng(0)


def case(name: str, call: Callable[..., object], *of: Callable[[], object]) -> None:
    """call(*arrays) on what the functions `of` give, by default one matrix of 2048 x 2048."""

    def make() -> Run:
        arrays = [make_one() for make_one in of or (matrix,)]
        return lambda: call(*arrays)

    CASES[name] = make


def floats(*sizes: int) -> Callable[[], np.ndarray]:
    return lambda: random.standard_normal(sizes, dtype=np.float32)


def doubles() -> np.ndarray:
    return random.random(MEGA) * 0.98 + 0.01


def integers(
    high: int, *sizes: int, low: int = 0, dtype: str = "int64"
) -> Callable[[], np.ndarray]:
    return lambda: random.integers(low, high, sizes, dtype=dtype)


def mask(share: float) -> Callable[[], np.ndarray]:
    return lambda: random.random((2048, 2048), dtype=np.float32) < share


def sort_with_places(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted values and where they were, as sort() gives them elsewhere."""
    indices = x.argsort(-1, kind="stable")
    return np.take_along_axis(x, indices, -1), indices


matrix = floats(2048, 2048)
for _size in (1, 4, 16, 24):
    _sizes = (_size, MEGA // 4)
    case(f"copy, {_size} MB", lambda x, y: np.copyto(y, x), floats(*_sizes), floats(*_sizes))
case("x @ y, 1024 x 1024", np.matmul, floats(1024, 1024), floats(1024, 1024))
case("x + 1, fresh result", lambda x: x + np.float32(1))
case("add(x, y, out=)", lambda x, y, z: np.add(x, y, out=z), matrix, matrix, matrix)
case("relu", lambda x: np.maximum(x, 0))
case("clamp(-1, 1)", lambda x: np.clip(x, -1, 1))
case("exp", np.exp)
case("x ** 2.5, positive", lambda x: x**2.5, lambda: random.random((2048, 2048), dtype=np.float32))
case("x > 0", lambda x: x > 0)
case("float to int64", lambda x: x.astype(np.int64))
case("where", np.where, mask(0.5), matrix, matrix)
for _dtype in ("int32", "int64"):
    _x = integers(9999, MEGA, low=-9999, dtype=_dtype)
    case(f"x // y, {_dtype}", np.floor_divide, _x, integers(99, MEGA, low=1, dtype=_dtype))
    case(f"x % 7, {_dtype}", lambda x: x % 7, _x)
case("exp, 1M doubles", np.exp, doubles)
case("tanh, 1M doubles", np.tanh, doubles)
case("x ** 2.5, 1M doubles", lambda x: x**2.5, doubles)

case("x.t().contiguous()", lambda x: x.T.copy())
case(
    "permute(0, 2, 3, 1).contiguous()",
    lambda x: x.transpose(0, 2, 3, 1).copy(),
    floats(16, 64, 64, 64),
)
case("x[::2].clone()", lambda x: x[::2].copy())
case("x[:, ::2].clone()", lambda x: x[:, ::2].copy())
case("x[:, ::2] + 1", lambda x: x[:, ::2] + np.float32(1))
case("x.flip(1)", lambda x: x[:, ::-1].copy())
case("x + y.t()", lambda x, y: x + y.T, matrix, matrix)
case(
    "x[::2] + y.t(), 1000 x 1000",
    lambda x, y: x[::2] + y.T,
    floats(2000, 1000),
    floats(1000, 1000),
)
case("x + row", lambda x, y: x + y, matrix, floats(2048))
case("x + column", lambda x, y: x + y, matrix, floats(2048, 1))
case("cat, dim 0", lambda x, y: np.concatenate([x, y]), matrix, matrix)
case("cat, dim 1", lambda x, y: np.concatenate([x, y], 1), matrix, matrix)
case("stack, last dim", lambda x, y: np.stack([x, y], -1), matrix, matrix)

case("sum", lambda x: x.sum())
case("sum(0)", lambda x: x.sum(0))
case("sum(1)", lambda x: x.sum(1))
case("sum, 1M floats", lambda x: x.sum(), floats(MEGA))
case("sum(0), 1000 x 1000", lambda x: x.sum(0), floats(1000, 1000))
case("mean(1)", lambda x: x.mean(1))
case("max", lambda x: x.max())
case("argmax(1)", lambda x: x.argmax(1))
case("argmax(0)", lambda x: x.argmax(0))
case("var(1)", lambda x: x.var(1, ddof=1))
case("norm", np.linalg.norm)
case("cumsum(1)", lambda x: x.cumsum(1))
case("cumsum(0)", lambda x: x.cumsum(0))
case("any", lambda x: x.any(), lambda: np.zeros((2048, 2048), bool))
case("count_nonzero", np.count_nonzero)

case("sort, 1M floats", sort_with_places, floats(MEGA))
case("sort, 10000 x 100", sort_with_places, floats(10_000, 100))
case("argsort, 1M int64", np.argsort, integers(1 << 40, MEGA))
case("unique, 1M int64", np.unique, integers(10_000, MEGA))
case("nonzero", lambda x: x.nonzero(), mask(0.1))
case("x[mask]", lambda x, m: x[m], matrix, mask(0.5))
case("searchsorted, 1M in 1000", np.searchsorted, lambda: np.sort(floats(1000)()), floats(MEGA))
case("bincount, 1M", lambda x: np.bincount(x, minlength=1000), integers(1000, MEGA))

_everywhere = integers(2048, 2048, 2048)
case("gather(0)", lambda x, i: np.take_along_axis(x, i, 0), matrix, _everywhere)
case("gather(1)", lambda x, i: np.take_along_axis(x, i, 1), matrix, _everywhere)
case("index_select(0)", lambda x, i: x.take(i, 0), matrix, integers(2048, 2048))
case("index_select(1)", lambda x, i: x.take(i, 1), matrix, integers(2048, 2048))
case("x[i, j], 1M", lambda x, i, j: x[i, j], matrix, integers(2048, MEGA), integers(2048, MEGA))

CASES["arange, 1M int64"] = lambda: lambda: np.arange(MEGA)
CASES["rand, 1M"] = lambda: lambda: random.random(MEGA, dtype=np.float32)
CASES["randn, 1M"] = lambda: lambda: random.standard_normal(MEGA, dtype=np.float32)
CASES["randint, 1M"] = lambda: lambda: random.integers(0, 100, MEGA)
CASES["randperm, 1M"] = lambda: lambda: random.permutation(MEGA)
CASES["randperm, 60000"] = lambda: lambda: random.permutation(60_000)
