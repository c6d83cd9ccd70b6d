"""From unconstrained numbers to each constraint: bijections, and maps that need not be.

``biject_to(constraint)`` is a bijective transform with a log-determinant, for Hamiltonian Monte
Carlo and variational inference; ``transform_to(constraint)`` may be cheaper and have more
inputs than outputs' freedom, for optimization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import constraints, transforms
from .utils import _Number

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Transforms by the type of a constraint.

    >>> from taeda.distributions import biject_to, constraints
    >>> biject_to(constraints.positive)(torch.tensor([0., 1.]))
    tensor([1.0000, 2.7183])
    """

    def __init__(self) -> None:
        self._registry: dict[type, Callable[[Any], Any]] = {}
        super().__init__()

    def register(self, constraint: Any, factory: Callable[[Any], Any] | None = None) -> Any:
        """Sets what makes the transform of a constraint (an instance or its class); a decorator
        without `factory`."""
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, "
                f"but got {constraint}"
            )
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> Any:
        """The transform; NotImplementedError for a constraint without one."""
        try:
            factory = self._registry[type(constraint)]
        except KeyError:
            raise NotImplementedError(
                f"Cannot transform {type(constraint).__name__} constraints"
            ) from None
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register(factory: Callable[[Any], Any], *registered: Any) -> None:
    for constraint in registered:
        biject_to.register(constraint, factory)
        transform_to.register(constraint, factory)


def _affine(first: Any, loc: Any, scale: Any) -> transforms.Transform:
    return transforms.ComposeTransform([first, transforms.AffineTransform(loc, scale)])


def _to_interval(constraint: Any) -> transforms.Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, _Number) and low == 0 and isinstance(high, _Number) and high == 1:
        return transforms.SigmoidTransform()
    return _affine(transforms.SigmoidTransform(), low, high - low)


_register(lambda c: transforms.identity_transform, constraints.real)
_register(lambda c: transforms.ExpTransform(), constraints.positive, constraints.nonnegative)
_register(
    lambda c: _affine(transforms.ExpTransform(), c.lower_bound, 1),
    constraints.greater_than,
    constraints.greater_than_eq,
)
_register(
    lambda c: _affine(transforms.ExpTransform(), c.upper_bound, -1),
    constraints.less_than,
)
_register(_to_interval, constraints.interval, constraints.half_open_interval)
_register(lambda c: transforms.CorrCholeskyTransform(), constraints.corr_cholesky)
biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _definite in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_definite, lambda c: transforms.PositiveDefiniteTransform())


def _register_composed(registry: ConstraintRegistry) -> None:
    """Constraints made of others take the transforms of those."""
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(
            registry(c.base_constraint), c.reinterpreted_batch_ndims
        ),
    )
    registry.register(
        constraints.cat,
        lambda c: transforms.CatTransform([registry(x) for x in c.cseq], c.dim, c.lengths),
    )
    registry.register(
        constraints.stack,
        lambda c: transforms.StackTransform([registry(x) for x in c.cseq], c.dim),
    )


_register_composed(biject_to)
_register_composed(transform_to)
