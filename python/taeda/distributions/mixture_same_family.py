"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Size, Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution, Expandable

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Expandable, Distribution):
    """Draws of one component of a batch, chosen by a Categorical: ``p(x) = sum_k w_k p_k(x)``.

    The components are the last batch dimension of `component_distribution`.

    >>> from taeda.distributions import Categorical, MixtureSameFamily, Normal
    >>> mixture = Categorical(torch.tensor([0.5, 0.5]))
    >>> MixtureSameFamily(mixture, Normal(torch.tensor([-1., 1.]), 1.)).log_prob(torch.tensor(0.))
    tensor(-1.4189)
    """

    arg_constraints: Any = {}
    has_rsample = False
    _batched = ("_component_distribution", "_mixture_distribution")
    _kept = ("_num_component", "_event_ndims")

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of "
                "torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of "
                "torch.distributions.Distribution"
            )
        mixture_batch = mixture_distribution.batch_shape
        batch_shape = component_distribution.batch_shape[:-1]
        for size1, size2 in zip(reversed(mixture_batch), reversed(batch_shape)):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        components = mixture_distribution.logits.shape[-1]
        of_family = component_distribution.batch_shape[-1]
        if components != of_family:
            raise ValueError(
                f"`mixture_distribution component` ({components}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({of_family})"
            )
        self._num_component = components
        self._event_ndims = len(component_distribution.event_shape)
        event_shape = component_distribution.event_shape
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> constraints.Constraint:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        return self._component_distribution

    def _average(self, x: Tensor) -> Tensor:
        """The mean over components of x, by their weights."""
        weights = self._pad_mixture_dimensions(self.mixture_distribution.probs)
        return taeda.sum(weights * x, dim=-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        return self._average(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        deviation = self.component_distribution.mean - self._pad(self.mean)
        within = self._average(self.component_distribution.variance)
        return within + self._average(deviation.pow(2.0))

    def cdf(self, value: Tensor) -> Tensor:
        cdf = self.component_distribution.cdf(self._pad(value))
        return taeda.sum(cdf * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._checked(x)
        of_component = self.component_distribution.log_prob(self._pad(x))
        log_weights = taeda.log_softmax(self.mixture_distribution.logits, dim=-1)
        return taeda.logsumexp(of_component + log_weights, dim=-1)

    def sample(self, sample_shape: Any = Size()) -> Tensor:
        with taeda.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self.mixture_distribution.sample(sample_shape)
            draws = self.component_distribution.sample(sample_shape)
            index = chosen.reshape(chosen.shape + (1,) * (len(self.event_shape) + 1))
            index = index.repeat((1,) * chosen.dim() + (1, *self.event_shape))
            return taeda.gather(draws, dim, index).squeeze(dim)

    def _pad(self, x: Tensor) -> Tensor:
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x: Tensor) -> Tensor:
        """Weights with dimensions of 1 for the batch that they lack and for the event."""
        batch_ndims = len(self.mixture_distribution.batch_shape)
        lacking = 0 if batch_ndims == 1 else len(self.batch_shape) - batch_ndims
        return x.reshape((*x.shape[:-1], *(1,) * lacking, x.shape[-1], *(1,) * self._event_ndims))

    def __repr__(self) -> str:
        parts = f"\n  {self.mixture_distribution},\n  {self.component_distribution}"
        return f"MixtureSameFamily({parts})"
