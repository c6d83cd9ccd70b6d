"""Distances between vectors."""

from __future__ import annotations

from taeda import Tensor
from taeda.nn import functional as F

from .module import Module

__all__ = ["PairwiseDistance", "CosineSimilarity"]


class PairwiseDistance(Module):
    """The p-norm of the differences of two batches of vectors.

        y = ||x1 - x2 + eps||_p

    Args:
        p: the order of the norm.
        eps: keeps the derivative at equal vectors finite.
        keepdim: whether the vectors' dimension stays, with size 1.

    Shape:
        x1, x2: ``(N, D)`` or ``(D,)``, broadcast with each other.
        output: ``(N)``, or ``(N, 1)`` with ``keepdim``.

    >>> nn.PairwiseDistance()(torch.zeros(1, 2), torch.tensor([[3., 4.]]))
    tensor([5.0000])
    """

    __constants__ = ["norm", "eps", "keepdim"]

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along a dimension.

        y = (x1 . x2) / (max(||x1||, eps) max(||x2||, eps))

    Args:
        dim: the dimension of the vectors.
        eps: the smallest norm.

    Shape:
        x1, x2: ``(*, D, *)``, broadcast with each other.
        output: without the dimension.

    >>> nn.CosineSimilarity()(torch.tensor([[1., 0.]]), torch.tensor([[1., 1.]]))
    tensor([0.7071])
    """

    __constants__ = ["dim", "eps"]

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)
