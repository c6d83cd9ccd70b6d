"""What continuous relaxations of discrete distributions have in common."""

from __future__ import annotations

from taeda import Tensor

from .transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """A transformed distribution with the temperature, logits and probs of its base."""

    has_rsample = True

    @property
    def temperature(self) -> Tensor:
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        return self.base_dist.probs
