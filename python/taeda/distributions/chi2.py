"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from taeda import Tensor

from . import constraints
from .gamma import Gamma

__all__ = ["Chi2"]


class Chi2(Gamma):
    """The sum of the squares of `df` standard normal numbers: ``Gamma(df / 2, 1 / 2)``.

    >>> from taeda.distributions import Chi2
    >>> Chi2(torch.tensor([1., 3.])).variance
    tensor([2., 6.])
    """

    arg_constraints = {"df": constraints.positive}
    _batched = ("concentration", "rate")

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        return self.concentration * 2
