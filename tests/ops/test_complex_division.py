"""Complex quotients are PyTorch's but for their last bits, at infinities and NaN too."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import taeda

INF, NAN = float("inf"), float("nan")
NUMBERS = [
    complex(a, b) for a in (0.0, -0.0, 1.5, -2.0, INF, -INF, NAN) for b in (0.0, 1.0, -INF, NAN)
]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_quotients_are_pytorchs(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    generator = np.random.default_rng(0)
    parts = generator.standard_normal((2, 2, 100)) * 10.0 ** generator.integers(
        -12, 12, (2, 2, 100)
    )
    pairs = list(itertools.product(NUMBERS, NUMBERS))
    tops = [a for a, b in pairs] + (parts[0, 0] + 1j * parts[0, 1]).tolist()
    bottoms = [b for a, b in pairs] + (parts[1, 0] + 1j * parts[1, 1]).tolist()

    def results(lib: Any) -> list[np.ndarray]:
        x, y = (lib.tensor(v, dtype=getattr(lib, dtype)) for v in (tops, bottoms))
        found = [x / y, y.reciprocal(), y.rsqrt(), x / INF, x / 3.0, *lib._foreach_div([x], [y])]
        return [v.numpy() for v in found]

    for mine, theirs in zip(results(taeda), results(torch), strict=True):
        finite = np.isfinite(theirs)
        np.testing.assert_array_equal(mine[~finite], theirs[~finite])
        error = np.abs(mine[finite] - theirs[finite])
        assert (error <= 4 * np.finfo(dtype).eps * np.abs(theirs[finite])).all()


def bits(x: np.ndarray) -> list[Any]:
    """The bits of each part, but for those of NaN, which mean nothing."""
    parts = x.view(x.real.dtype)
    return [None if np.isnan(part) else part.tobytes() for part in parts]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("number", [1, 1.0, True, 2.5, 1j, -0.0, INF])
def test_numbers_are_divided_as_in_pytorch(number: complex, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    ends = (0.0, -0.0, 1.0, -2.0, 0.3, INF, -INF, NAN, 3e38, 1e-40, 1e300)
    points = [complex(a, b) for a in ends for b in ends]
    results = []
    for lib in (taeda, torch):
        x = lib.tensor(points, dtype=getattr(lib, dtype))
        columns = number / x.reshape(11, 11).T
        assert columns.stride() == (1, 11)
        zeros = number / lib.zeros((), dtype=getattr(lib, dtype))
        every = [number / x, x.__rtruediv__(number), columns.T.reshape(-1), zeros.reshape(1)]
        results.append([bits(y.numpy()) for y in every])
    assert results[0] == results[1]
    assert (
        type((number / taeda.tensor([1j], requires_grad=True)).grad_fn).__name__ == "MulBackward0"
    )
