"""Calls every operator's samples with a dimension of size 0, of all their tensors and of one.

What such a call gives is compared elsewhere; here it must not end the process, as a division by a
size does. Prints each call before it is made, and how many there were.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from gen.table import load
from tests.ops import samples as grid

import taeda as torch

ROOT = Path(__file__).resolve().parents[2]


class Emptied(grid.Maker):
    """Makes tensors whose dimension `dim` has size 0: all of them, or the one of this number."""

    dim, only = 0, -1

    def __post_init__(self) -> None:
        super().__post_init__()
        self.count = self.most = 0

    def emptied(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        self.most = max(self.most, len(shape))
        self.count += 1
        here = self.only in (-1, self.count - 1)
        return tuple(0 if here and d == self.dim else n for d, n in enumerate(shape))

    def x(self, *shape: int, dtype: str | None = None) -> Any:
        return super().x(*self.emptied(shape), dtype=dtype)

    def i(self, *shape: int, high: int = 3) -> Any:
        return super().i(*self.emptied(shape), high=high)

    def b(self, *shape: int) -> Any:
        return super().b(*self.emptied(shape))


def attempt(function: Any, op: Any, sample: str, dtype: str, dim: int, only: int) -> Emptied:
    low, high = op.test.get("range", [-3, 3])
    made = Emptied(torch, dtype, "plain", low, high, 0)
    made.dim, made.only = dim, only
    try:
        args, kwargs = made.arguments(sample)
        print(op.where, op.ident, sample, dtype, dim, only, flush=True)
        function(*args, **kwargs)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as error:
        assert str(error)
    return made


def main() -> None:
    warnings.simplefilter("ignore")
    calls = 0
    for op in load(ROOT / "ops"):
        function = grid.place(op, torch)
        if function is None or op.is_factory:
            continue
        dtype = grid.dtypes(op)[0] if "float32" not in grid.dtypes(op) else "float32"
        for sample in grid.samples(op)[:2]:
            made = attempt(function, op, sample, dtype, -1, -1)  # as it is, to count
            for dim in range(made.most):
                for only in range(-1, made.count if made.count > 1 else 0):
                    attempt(function, op, sample, dtype, dim, only)
                    calls += 1
    print(f"{calls} calls")


if __name__ == "__main__":
    main()
