"""Products and factors that algorithms of linear algebra share."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda._functions.removed import eig as eig
from taeda._functions.removed import lstsq as lstsq
from taeda._functions.removed import matrix_rank as matrix_rank
from taeda._functions.removed import solve as solve


def is_sparse(A: Any) -> bool:
    """Whether a tensor is a sparse COO one; TypeError for what is no tensor."""
    if isinstance(A, Tensor):
        return A.layout == taeda.sparse_coo
    raise TypeError("expected Tensor" + (f" but got {type(A)}" if A is not None else ""))


def get_floating_dtype(A: Tensor) -> taeda.dtype:
    """The dtype of results for a matrix: its own if it is real, else float32."""
    return A.dtype if A.dtype.is_floating_point else taeda.float32


def matmul(A: Tensor | None, B: Tensor) -> Tensor:
    """A B, for a sparse A too; B where A is None."""
    if A is None:
        return B
    return taeda.sparse.mm(A, B) if is_sparse(A) else taeda.matmul(A, B)


def bform(X: Tensor, A: Tensor | None, Y: Tensor) -> Tensor:
    """X^T A Y."""
    return matmul(X.mT, matmul(A, Y))


def qform(A: Tensor | None, S: Tensor) -> Tensor:
    """S^T A S.

    >>> from torch._linalg_utils import qform
    >>> qform(torch.eye(2), torch.tensor([[1.0], [2.0]]))
    tensor([[5.]])
    """
    return bform(S, A, S)


def basis(A: Tensor) -> Tensor:
    """An orthonormal basis of the columns' space."""
    return taeda.linalg.qr(A).Q


def symeig(A: Tensor, largest: bool | None = False) -> tuple[Tensor, Tensor]:
    """Eigenvalues and eigenvectors of a symmetric matrix; the largest first if asked for."""
    values, vectors = taeda.linalg.eigh(A, UPLO="U")
    if largest:
        values, vectors = taeda.flip(values, dims=(-1,)), taeda.flip(vectors, dims=(-1,))
    return values, vectors
