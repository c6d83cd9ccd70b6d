"""The beta distribution."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from . import constraints
from .dirichlet import Dirichlet
from .distribution import Expandable
from .exp_family import ExponentialFamily
from .utils import _Number, broadcast_all

__all__ = ["Beta"]


class Beta(Expandable, ExponentialFamily):
    """Density proportional to ``x^(a - 1) (1 - x)^(b - 1)`` on [0, 1].

    a is `concentration1`, b `concentration0`.

    >>> from taeda.distributions import Beta
    >>> Beta(2., 2.).log_prob(torch.tensor(0.5))
    tensor(0.4055)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True
    _batched = ("_dirichlet",)

    def __init__(
        self, concentration1: Any, concentration0: Any, validate_args: bool | None = None
    ) -> None:
        if isinstance(concentration1, _Number) and isinstance(concentration0, _Number):
            both = taeda.tensor([float(concentration1), float(concentration0)])
        else:
            both = taeda.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Tensor:
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Tensor:
        return self._dirichlet.concentration[..., 1]

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Tensor) -> Tensor:
        self._checked(value)
        return self._dirichlet.log_prob(taeda.stack([value, 1.0 - value], -1))

    def entropy(self) -> Tensor:
        return self._dirichlet.entropy()

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return taeda.lgamma(x) + taeda.lgamma(y) - taeda.lgamma(x + y)
