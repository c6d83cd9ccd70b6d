"""Regions of values: where parameters and samples may lie.

``constraint.check(value)`` tells of each event, the last ``event_dim`` dimensions of `value`,
whether it lies within; ``is_discrete`` says whether the region is one of separate points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor

__all__ = [
    "Constraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "MixtureSameFamilyConstraint",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region over which a variable is valid.

    >>> torch.distributions.constraints.positive.check(torch.tensor([-1., 1.]))
    tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _bounds: tuple[str, ...] = ()  # attributes that __repr__ shows

    def check(self, value: Tensor) -> Tensor:
        """Whether each event of `value` lies in the region."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._bounds)
        return f"{type(self).__name__[1:]}({shown})"


class _Dependent(Constraint):
    """Stands for a region that depends on other variables: it cannot be checked alone."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim
        super().__init__()

    @property
    def is_discrete(self) -> bool:
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return self._is_discrete

    @property
    def event_dim(self) -> int:
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return self._event_dim

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        """The same with what is known of it."""
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other variables."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of instances that is a dependent constraint on the class.

    Used with arguments or without: ``@dependent_property(is_discrete=False, event_dim=0)``.
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def _check_constraint(base: Any) -> None:
    if not isinstance(base, Constraint):
        raise AssertionError(f"base_constraint must be a Constraint, got {type(base).__name__}")


class _Wrapping(Constraint):
    """A constraint made from another one."""

    def __init__(self, base_constraint: Constraint) -> None:
        _check_constraint(base_constraint)
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim


class _IndependentConstraint(_Wrapping):
    """Every element of the last `reinterpreted_batch_ndims` batch dimensions lies in the base."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        n = reinterpreted_batch_ndims
        if not isinstance(n, int):
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int, got {type(n).__name__}"
            )
        if n < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {n}")
        self.reinterpreted_batch_ndims = n

    @property
    def event_dim(self) -> int:
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        n = self.reinterpreted_batch_ndims
        if result.dim() < n:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[: result.dim() - n], -1)).all(-1)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__[1:]}({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"
        )


class MixtureSameFamilyConstraint(_Wrapping):
    """The region of a mixture's samples: they lie in the region of every component."""

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        kept = value.dim() - self.event_dim
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


class _Boolean(Constraint):
    """0 or 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    """Vectors of zeros and a single 1."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & value.sum(-1).eq(1)


class _LowerBound(Constraint):
    _bounds: tuple[str, ...] = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _UpperBound(Constraint):
    _bounds: tuple[str, ...] = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _TwoBounds(Constraint):
    _bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound


class _IntegerInterval(_TwoBounds):
    """Integers of [lower_bound, upper_bound]."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_UpperBound):
    """Integers of (-inf, upper_bound]."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_LowerBound):
    """Integers of [lower_bound, inf)."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _Real(Constraint):
    """Any number but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class _GreaterThan(_LowerBound):
    """(lower_bound, inf]"""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_LowerBound):
    """[lower_bound, inf)"""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_UpperBound):
    """[-inf, upper_bound)"""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_TwoBounds):
    """[lower_bound, upper_bound]"""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_TwoBounds):
    """[lower_bound, upper_bound)"""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    """Vectors of nonnegative numbers whose sum is 1 to within 1e-6."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(dim=-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_UpperBound):
    """Vectors of counts whose sum is at most upper_bound."""

    is_discrete = True
    event_dim = 1
    _bounds = ()

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(dim=-1) & (value.sum(dim=-1) <= self.upper_bound)


class _LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).reshape((*value.shape[:-2], -1)).min(-1)[0]


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        positive_diagonal = (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]
        return super().check(value) & positive_diagonal


class _CorrCholesky(_LowerCholesky):
    """Cholesky factors of correlation matrices: their rows have length 1."""

    def check(self, value: Tensor) -> Tensor:
        tolerance = taeda.finfo(value.dtype).eps * value.size(-1) * 10
        lengths = taeda.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & (lengths - 1).abs().le(tolerance).all(dim=-1)


class _Square(Constraint):
    """Square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        is_square = value.shape[-2] == value.shape[-1]
        return taeda.full(value.shape[:-2], is_square, dtype=taeda.bool, device=value.device)


class _Symmetric(_Square):
    """Symmetric matrices, to within rounding."""

    def check(self, value: Tensor) -> Tensor:
        square_check = super().check(value)
        if not square_check.all():
            return square_check
        return taeda.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric_check = super().check(value)
        if not symmetric_check.all():
            return symmetric_check
        return taeda.linalg.eigvalsh(value).ge(0).all(-1)


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value: Tensor) -> Tensor:
        symmetric_check = super().check(value)
        if not symmetric_check.all():
            return symmetric_check
        return taeda.linalg.cholesky_ex(value).info.eq(0)


class _Sequence(Constraint):
    """One constraint for each of several parts along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    @property
    def is_discrete(self) -> bool:
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(
                f"dim {self.dim} out of range for value with {value.dim()} dimensions"
            )


class _Cat(_Sequence):
    """Part i, `lengths[i]` long along `dim` (1 unless given), lies in cseq[i]."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})"
            )

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return taeda.cat(checks, self.dim)


class _Stack(_Sequence):
    """Slice i along `dim` lies in cseq[i]."""

    @property
    def event_dim(self) -> int:
        largest = max(c.event_dim for c in self.cseq)
        return largest + 1 if self.dim + largest < 0 else largest

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        slices = value.unbind(self.dim)
        return taeda.stack([c.check(v) for v, c in zip(slices, self.cseq)], self.dim)


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
