"""Exponential families."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities ``exp(<t(x), theta> - F(theta) + k(x))``.

    theta are the natural parameters (``_natural_params``), F the log normalizer
    (``_log_normalizer``), t the sufficient statistics and k the carrier measure, whose mean is
    ``_mean_carrier_measure``. Entropies and divergences follow from F as Bregman divergences.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """F(theta) - <theta, grad F(theta)> - E[k(x)]"""
        result: Any = -self._mean_carrier_measure
        natural = [p.detach().requires_grad_() for p in self._natural_params]
        log_normalizer = self._log_normalizer(*natural)
        gradients = taeda.autograd.grad(log_normalizer.sum(), natural, create_graph=True)
        result = result + log_normalizer
        for parameter, gradient in zip(natural, gradients):
            result = result - (parameter * gradient).reshape((*self._batch_shape, -1)).sum(-1)
        return result
