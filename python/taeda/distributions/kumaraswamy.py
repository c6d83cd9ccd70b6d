"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Kumaraswamy"]


def _moments(a: Tensor, b: Tensor, n: int) -> Tensor:
    """E[x^n] = b B(1 + n / a, b)"""
    first = 1 + n / a
    return b * taeda.exp(taeda.lgamma(first) + taeda.lgamma(b) - taeda.lgamma(first + b))


class Kumaraswamy(TransformedDistribution):
    """``P(X <= x) = 1 - (1 - x^a)^b`` on [0, 1], a `concentration1` and b `concentration0`.

    >>> from taeda.distributions import Kumaraswamy
    >>> Kumaraswamy(1., 1.).mean
    tensor(0.5000)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros = taeda.full_like(self.concentration0, 0)
        base = Uniform(zeros, taeda.full_like(zeros, 1), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return _moments(self.concentration1, self.concentration0, 1)

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return log_mode.masked_fill((b < 1) | (a < 1), math.nan).exp()

    @property
    def variance(self) -> Tensor:
        second = _moments(self.concentration1, self.concentration0, 2)
        return second - taeda.pow(self.mean, 2)

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = taeda.digamma(b + 1) + euler_constant
        rest = (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic
        return rest - taeda.log(a) - taeda.log(b)
