"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """``P(X > x) = exp(-(x / scale)^concentration)`` for x >= 0.

    >>> from taeda.distributions import Weibull
    >>> Weibull(1., 1.).log_prob(torch.tensor(1.))
    tensor(-1.)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _batched = ("concentration_reciprocal",)

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(taeda.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.scale * taeda.exp(taeda.lgamma(1 + self.concentration_reciprocal))

    @property
    def mode(self) -> Tensor:
        k = self.concentration
        return self.scale * ((k - 1) / k) ** k.reciprocal()

    @property
    def variance(self) -> Tensor:
        second = taeda.exp(taeda.lgamma(1 + 2 * self.concentration_reciprocal))
        first_squared = taeda.exp(2 * taeda.lgamma(1 + self.concentration_reciprocal))
        return self.scale.pow(2) * (second - first_squared)

    def entropy(self) -> Tensor:
        return (
            euler_constant * (1 - self.concentration_reciprocal)
            + taeda.log(self.scale * self.concentration_reciprocal)
            + 1
        )
