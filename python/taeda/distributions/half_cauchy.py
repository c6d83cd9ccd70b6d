"""The half-Cauchy distribution."""

from __future__ import annotations

import math

from taeda import Tensor

from .cauchy import Cauchy
from .half_normal import Half
from .utils import _full_like_batch

__all__ = ["HalfCauchy"]


class HalfCauchy(Half):
    """|x| for x of ``Cauchy(0, scale)``.

    >>> from taeda.distributions import HalfCauchy
    >>> HalfCauchy(1.).cdf(torch.tensor(1.))
    tensor(0.5000)
    """

    _symmetric = Cauchy

    @property
    def mean(self) -> Tensor:
        return _full_like_batch(self, self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance
