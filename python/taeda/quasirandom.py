"""Sobol' sequences: points that fill the unit cube more evenly than random ones."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import taeda
from taeda import Tensor

from . import _sobol_numbers

__all__ = ["SobolEngine"]


def _numbers_of_scipy(dimension: int) -> list[tuple[int, list[int]]]:
    """As _sobol_numbers.direction_numbers, from the same table whole in SciPy."""
    found = importlib.util.find_spec("scipy")
    if found is None or found.origin is None:
        raise NotImplementedError(
            f"SobolEngine in more than {_sobol_numbers.DIMENSIONS} dimensions reads its direction "
            "numbers from SciPy, which is not installed"
        )
    import numpy

    with numpy.load(Path(found.origin).parent / "stats/_sobol_direction_numbers.npz") as table:
        polynomials, m = table["poly"][1:dimension].tolist(), table["vinit"][1:dimension].tolist()
    return [(p, row[: p.bit_length() - 1]) for p, row in zip(polynomials, m)]


def _recurrence(polynomial: int, m: list[int], count: int) -> list[int]:
    """m_1 .. m_count: ``m_i = 2 c_1 m_(i-1) ^ 4 c_2 m_(i-2) ^ ... ^ 2^s m_(i-s) ^ m_(i-s)``."""
    s = len(m)
    m = m[:count]
    while len(m) < count:
        new = m[-s]
        for k in range(1, s + 1):
            if polynomial >> (s - k) & 1:
                new ^= m[-k] << k
        m.append(new)
    return m


class SobolEngine:
    """Draws the points of a Sobol' sequence in [0, 1)^dimension, scrambled where told.

    Scrambling (Owen's, by random lower triangular matrices and shifts) takes its numbers from
    `seed`, or from the default generator. The first point is 0 where nothing is scrambled.

    >>> torch.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        few = dimension <= _sobol_numbers.DIMENSIONS
        numbers = (_sobol_numbers.direction_numbers if few else _numbers_of_scipy)(dimension)
        m = [[1] * self.MAXBIT] + [_recurrence(p, first, self.MAXBIT) for p, first in numbers]
        weights = 2 ** taeda.arange(self.MAXBIT - 1, -1, -1, device="cpu")
        self.sobolstate = taeda.tensor(m, device="cpu") * weights
        self.shift = taeda.zeros(dimension, dtype=taeda.long, device="cpu")
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, (n, dimension)."""
        points = self._points(self.num_generated, n)
        if n > 0:
            self.quasi = points[-1]
        self.num_generated += n
        result = points.to(dtype or taeda.get_default_dtype()) * 2.0**-self.MAXBIT
        if out is not None:
            return out.resize_as_(result).copy_(result)
        return result

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next ``2**m`` points; ValueError unless a power of 2 are drawn then."""
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1) != 0:
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Begins again with the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leaves out the next n points."""
        self.num_generated += n
        if self.num_generated > 0:
            self.quasi = self._points(self.num_generated - 1, 1)[0]
        return self

    def _points(self, first: int, n: int) -> Tensor:
        """Points first .. first + n - 1 as integers: direction numbers joined by the bits of the
        index in Gray code (Antonov & Saleev 1979)."""
        index = taeda.arange(first, first + n, device="cpu")
        gray = (index ^ (index >> 1)).unsqueeze(-1)
        points = self.shift.expand(n, self.dimension).clone()
        for bit in range((first + n - 1).bit_length() if n > 0 else 0):
            points ^= (gray >> bit & 1) * self.sobolstate[:, bit]
        return points

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = taeda.Generator()
            generator.manual_seed(self.seed)
        options: dict[str, Any] = {"device": "cpu", "generator": generator}
        n, bits = self.dimension, self.MAXBIT
        flips = taeda.randint(2, (n, bits), **options)
        self.shift = (flips * 2 ** taeda.arange(bits, device="cpu")).sum(-1)
        matrices = taeda.randint(2, (n, bits, bits), **options).tril()
        matrices.diagonal(0, -2, -1).fill_(1)
        # Each direction number as a vector of bits, the highest first, times the matrix modulo 2.
        places = taeda.arange(bits - 1, -1, -1, device="cpu")
        vectors = self.sobolstate.unsqueeze(-1) >> places & 1
        mixed = (vectors.float() @ matrices.mT.float()).long() % 2
        self.sobolstate = (mixed << places).sum(-1)

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(shown)})"
