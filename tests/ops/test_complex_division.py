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
