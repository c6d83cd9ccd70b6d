"""Batch dimensions read as dimensions of the event."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from taeda import Size, Tensor

from . import constraints
from .distribution import Distribution, Expandable
from .utils import _sum_rightmost

__all__ = ["Independent"]

D = TypeVar("D", bound=Distribution)


class Independent(Expandable, Distribution, Generic[D]):
    """The last `reinterpreted_batch_ndims` dimensions of a distribution's batch become events.

    ``log_prob`` and ``entropy`` are summed over them.

    >>> from taeda.distributions import Independent, Normal
    >>> d = Independent(Normal(torch.zeros(2, 3), torch.ones(2, 3)), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(torch.zeros(3))
    (torch.Size([2]), torch.Size([3]), tensor([-2.7568, -2.7568]))
    """

    arg_constraints: Any = {}
    _batched = ("base_dist",)
    _kept = ("reinterpreted_batch_ndims",)
    base_dist: D

    def __init__(
        self,
        base_distribution: D,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        n, batch_shape = reinterpreted_batch_ndims, base_distribution.batch_shape
        if n > len(batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {n} vs {len(batch_shape)}"
            )
        shape = batch_shape + base_distribution.event_shape
        cut = len(batch_shape) - n
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    @property
    def has_rsample(self) -> bool:  # type: ignore[override]
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        return self.reinterpreted_batch_ndims <= 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        result = self.base_dist.support
        if self.reinterpreted_batch_ndims:
            result = constraints.independent(result, self.reinterpreted_batch_ndims)
        return result

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{self.__class__.__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
