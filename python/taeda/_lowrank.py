"""Approximations of low rank of a matrix, by products with random vectors (Halko et al., 2009)."""

from __future__ import annotations

from typing import Any

import taeda as torch
from taeda._C import Tensor, _overridable

__all__ = ["pca_lowrank", "svd_lowrank"]


def get_approximate_basis(
    A: Tensor, q: int, niter: int | None = 2, M: Tensor | None = None
) -> Tensor:
    """(..., m, q): orthonormal columns whose span nearly holds that of ``A - M`` (..., m, n)."""
    steps = 2 if niter is None else niter
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else torch.get_default_dtype()
    A = A.to(dtype)
    start = torch.randn(A.shape[-1], q, dtype=dtype, device=A.device)
    basis = torch.linalg.qr(_product(A, M, start)).Q
    for _ in range(steps):
        basis = torch.linalg.qr(_product(_adjoint(A), _adjoint(M), basis)).Q
        basis = torch.linalg.qr(_product(A, M, basis)).Q
    return basis


def _adjoint(A: Any) -> Any:
    """A.mH; of a sparse matrix without a conjugate view."""
    if A is None or not A._is_any_sparse():
        return None if A is None else A.mH
    return (A.conj() if A.is_complex() else A).transpose(-2, -1)


def _product(A: Tensor, M: Tensor | None, x: Tensor) -> Tensor:
    """(A - M) @ x, in two products where `A` is sparse."""
    if not A._is_any_sparse():
        return (A if M is None else A - M) @ x
    return A @ x if M is None else A @ x - M @ x


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
        A, M = _adjoint(A), _adjoint(M)
    basis = get_approximate_basis(A, rank, niter, M)
    projected = _product(_adjoint(A), _adjoint(M), basis).mH
    U, S, Vh = torch.linalg.svd(projected, full_matrices=False)
    U, V = basis @ U, Vh.mH
    return (V, S, U) if is_wide else (U, S, V)


@_overridable
def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Principal components of the rows of `A`: svd_lowrank after the mean row is taken off.

    >>> torch.pca_lowrank(torch.tensor([[1.0, 0.0], [3.0, 0.0], [5.0, 0.0]]), q=1)[1]
    tensor([2.8284])
    """
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
    if center and A._is_any_sparse():  # the mean rows stay apart, so that A stays sparse
        if A.dim() != 2:
            raise ValueError("pca_lowrank input is expected to be 2-dimensional tensor")
        mean = torch.sparse.sum(A.to_sparse(), 0).to_dense() / rows
        return svd_lowrank(A, q, niter=niter, M=mean.expand(rows, columns))
    return svd_lowrank(A - A.mean(-2, keepdim=True) if center else A, q, niter=niter)
