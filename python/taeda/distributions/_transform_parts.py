"""Transforms made of others, a part of the tensor each, and of distribution functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor

from . import constraints
from ._transform import Transform
from .utils import _sum_rightmost, lazy_property


class _PartsTransform(Transform):
    """One transform for each part of a tensor along a dimension."""

    transforms: list[Transform]

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) if cache_size else t for t in tseq]
        self.dim = dim

    def _check(self, name: str, x: Tensor, size: int, what: str) -> None:
        if not -x.dim() <= self.dim < x.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for {what or name} with {x.dim()} dimensions"
            )
        if x.size(self.dim) != size:
            raise AssertionError(
                f"{name}.size({self.dim}) = {x.size(self.dim)} must equal {self._size_name} {size}"
            )

    _size_name: str

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(t.bijective for t in self.transforms)


class CatTransform(_PartsTransform):
    """Transform i takes the next `lengths[i]` slices (1 unless given) along `dim`."""

    _parameters = ("transforms", "dim", "lengths")
    _size_name = "length"

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )

    @lazy_property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        return sum(self.lengths)

    def _parts(self, name: str, x: Tensor, what: str = "") -> list[Tensor]:
        self._check(name, x, self.length, what)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [x.narrow(self.dim, s, n) for s, n in zip(starts, self.lengths)]

    def _map(self, name: str, x: Tensor, f: Callable[[Transform, Tensor], Tensor]) -> Tensor:
        parts = self._parts(name, x, "tensor")
        return taeda.cat([f(t, part) for t, part in zip(self.transforms, parts)], dim=self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return self._map("x", x, lambda t, part: t(part))

    def _inverse(self, y: Tensor) -> Tensor:
        return self._map("y", y, lambda t, part: t.inv(part))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, xs, ys in zip(self.transforms, self._parts("x", x), self._parts("y", y)):
            term = t.log_abs_det_jacobian(xs, ys)
            terms.append(_sum_rightmost(term, max(self.event_dim - t.event_dim, 0)))
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return taeda.cat(terms, dim=dim) if dim < 0 else sum(terms)  # type: ignore[return-value]

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_PartsTransform):
    """Transform i takes slice i along `dim`.

    >>> from taeda.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([identity_transform, ExpTransform()])(torch.zeros(2))
    tensor([0., 1.])
    """

    _parameters = ("transforms", "dim")
    _size_name = "len(transforms)"

    def _parts(self, name: str, x: Tensor, what: str = "") -> Any:
        self._check(name, x, len(self.transforms), what)
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        parts = self._parts("x", x, "tensor")
        return taeda.stack([t(part) for t, part in zip(self.transforms, parts)], dim=self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        parts = self._parts("y", y, "tensor")
        return taeda.stack([t.inv(part) for t, part in zip(self.transforms, parts)], dim=self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        parts = zip(self.transforms, self._parts("x", x), self._parts("y", y))
        return taeda.stack([t.log_abs_det_jacobian(a, b) for t, a, b in parts], dim=self.dim)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)


class CumulativeDistributionTransform(Transform):
    """y = the distribution function of a distribution at x."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1
    _parameters = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:  # type: ignore[override]
        return self.distribution.support

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
