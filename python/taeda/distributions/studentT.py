"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .chi2 import Chi2
from .distribution import Broadcast, Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Broadcast, Distribution):
    """``loc + scale z / sqrt(v / df)`` for z standard normal and v chi-squared with df degrees.

    Density proportional to ``(1 + y^2 / df)^(-(df + 1) / 2)``, y = (x - loc) / scale.

    >>> from taeda.distributions import StudentT
    >>> StudentT(3.).log_prob(torch.tensor(0.))
    tensor(-1.0009)
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    _batched = ("_chi2",)
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        Distribution.__init__(self, self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        df, finite = self.df, self.df > 2
        safe = taeda.where(finite, df, 3.0)
        result = taeda.where(finite, self.scale.pow(2) * safe / (safe - 2), math.inf)
        return result.masked_fill(df <= 1, math.nan)

    def rsample(self, sample_shape: Any = Size()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        z = _standard_normal(shape, dtype=self.df.dtype, device=self.df.device)
        y = z * taeda.rsqrt(self._chi2.rsample(sample_shape) / self.df)
        return self.loc + self.scale * y

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        y = (value - self.loc) / self.scale
        log_normalizer = (
            self.scale.log()
            + 0.5 * self.df.log()
            + 0.5 * math.log(math.pi)
            + taeda.lgamma(0.5 * self.df)
            - taeda.lgamma(0.5 * (self.df + 1.0))
        )
        return -0.5 * (self.df + 1.0) * taeda.log1p(y**2.0 / self.df) - log_normalizer

    def entropy(self) -> Tensor:
        half, next_half = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = taeda.lgamma(half) + math.lgamma(0.5) - taeda.lgamma(next_half)
        return (
            self.scale.log()
            + next_half * (taeda.digamma(next_half) - taeda.digamma(half))
            + 0.5 * self.df.log()
            + log_beta
        )
