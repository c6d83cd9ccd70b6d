"""Approximations of low rank of a matrix, by products with random vectors (Halko et al., 2009)."""

from __future__ import annotations

from taeda import _C, Tensor, pca_lowrank, svd_lowrank

__all__ = ["pca_lowrank", "svd_lowrank"]


def get_approximate_basis(
    A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None
) -> Tensor:
    """(..., m, q): orthonormal columns whose span nearly holds that of ``A - M`` (..., m, n)."""
    return _C._by_owner["torch"]["_approximate_basis"](A, q, niter, M)
