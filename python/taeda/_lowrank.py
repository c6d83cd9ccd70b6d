"""Approximations of low rank of a matrix, by products with random vectors (Halko et al., 2009)."""

from __future__ import annotations

import taeda as torch
from taeda._C import Tensor, _overridable

__all__ = ["pca_lowrank", "svd_lowrank"]


def get_approximate_basis(
    A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None
) -> Tensor:
    """(..., m, q): orthonormal columns whose span nearly holds that of ``A - M`` (..., m, n)."""
    steps = 2 if niter is None else niter
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else torch.get_default_dtype()
    difference = A.to(dtype) if M is None else A.to(dtype) - M
    start = torch.randn(A.shape[-1], q, dtype=dtype, device=A.device)
    basis = torch.linalg.qr(difference @ start).Q
    for _ in range(steps):
        basis = torch.linalg.qr(difference.mH @ basis).Q
        basis = torch.linalg.qr(difference @ basis).Q
    return basis


@_overridable
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V such that ``U @ diag(S) @ V.mH`` is near to ``A - M``, of rank `q`.

    >>> import taeda as torch
    >>> U, S, V = torch.svd_lowrank(torch.eye(3), q=2)
    >>> U.shape, S.shape, V.shape
    (torch.Size([3, 2]), torch.Size([2]), torch.Size([3, 2]))
    """
    rank = 6 if q is None else q
    if M is not None:
        M = M.broadcast_to(A.shape)
    is_wide = A.shape[-2] < A.shape[-1]
    if is_wide:
        A, M = A.mH, None if M is None else M.mH
    basis = get_approximate_basis(A, rank, niter, M)
    U, S, Vh = torch.linalg.svd(basis.mH @ (A if M is None else A - M), full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if is_wide else (U, S, V)


@_overridable
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components of the rows of `A`: svd_lowrank after the mean row is taken off."""
    rows, columns = A.shape[-2:]
    if q is None:
        q = min(6, rows, columns)
    elif not 0 <= q <= min(rows, columns):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)="
            f"{min(rows, columns)}"
        )
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter=niter)
