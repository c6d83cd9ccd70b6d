"""Dropout and its relatives: active in training mode only."""

from __future__ import annotations

from taeda import Tensor
from taeda.nn import functional as F

from .module import Module

__all__ = [
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "AlphaDropout",
    "FeatureAlphaDropout",
]


class _DropoutNd(Module):
    __constants__ = ["p", "inplace"]

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if p < 0 or p > 1:
            error = ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
            error.add_note("Fix: p is the share of elements that become 0, such as 0.5")
            raise error
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Sets elements to zero at random in training; does nothing in evaluation.

        y = x * mask / (1 - p),  mask an independent draw for each element, 0 with probability p

    Dividing by ``1 - p`` keeps the mean, so evaluation needs no scale.

    Args:
        p: the probability of a zero, from 0 to 1.
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> nn.Dropout(0.5)(torch.ones(6))
    tensor([0., 0., 2., 0., 0., 0.])
    >>> nn.Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Sets whole channels to zero at random in training; does nothing in evaluation.

    Neighbouring elements of a channel are alike, so that dropping single ones would remove little.
    The other channels are divided by ``1 - p``.

    Args:
        p: the probability of a zero, from 0 to 1.
        inplace: whether the input itself is written.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: the same.

    >>> nn.Dropout1d(0.5)(torch.ones(1, 4, 2)).sum(2)
    tensor([[0., 0., 4., 0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Sets whole channels to zero at random in training; does nothing in evaluation.

    Neighbouring elements of a channel are alike, so that dropping single ones would remove little.
    The other channels are divided by ``1 - p``.

    Args:
        p: the probability of a zero, from 0 to 1.
        inplace: whether the input itself is written.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: the same.

    >>> nn.Dropout2d(0.5)(torch.ones(1, 4, 2, 2)).sum((2, 3))
    tensor([[0., 0., 8., 0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Sets whole channels to zero at random in training; does nothing in evaluation.

    Neighbouring elements of a channel are alike, so that dropping single ones would remove little.
    The other channels are divided by ``1 - p``.

    Args:
        p: the probability of a zero, from 0 to 1.
        inplace: whether the input itself is written.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: the same.

    >>> nn.Dropout3d(0.5)(torch.ones(1, 4, 2, 2, 2)).sum((2, 3, 4))
    tensor([[ 0.,  0., 16.,  0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout that keeps mean 0 and variance 1, for networks of `SELU`. arXiv 1706.02515

    Elements are set to SELU's negative limit (about -1.758) instead of zero, and all are scaled and
    shifted so that mean and variance stay.

    Args:
        p: the probability of a zero, from 0 to 1.
        inplace: whether the input itself is written.

    Shape:
        input: ``(*)``, any.
        output: the same.

    >>> y = nn.AlphaDropout(0.2)(torch.randn(10000))
    >>> abs(y.mean().item()) < 0.05, abs(y.std().item() - 1) < 0.05
    (True, True)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels.

    A channel is set to SELU's negative limit as a whole; all are scaled and shifted so that mean 0
    and variance 1 stay.

    Args:
        p: the probability of a zero, from 0 to 1.
        inplace: whether the input itself is written.

    Shape:
        input: ``(N, C, *)``.
        output: the same.

    >>> y = nn.FeatureAlphaDropout(0.5)(torch.zeros(1, 6, 2))
    >>> bool((y[..., 0] == y[..., 1]).all())
    True
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training)
