"""Products with sparse matrices, and sums that keep them sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C

if TYPE_CHECKING:
    from taeda import Tensor

_FUNCTIONS = _C._by_owner["torch"]
_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin", "max", "min")


def mm(mat1: Tensor, mat2: Tensor, reduce: str | None = None) -> Tensor:
    """The product of two matrices, of which one may be sparse or both.

    The gradient of a sparse one has its pattern. With `reduce` ('sum', 'mean', 'amax' or 'amin')
    the terms of each element are reduced that way, of a torch.sparse_csr matrix and a dense one.

    >>> torch.sparse.mm(torch.eye(2).to_sparse(), torch.tensor([[1., 2.], [3., 4.]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if reduce is not None:
        return _reduced(mat1, mat2, reduce)
    if not mat1._is_any_sparse() and not mat2._is_any_sparse():
        return taeda.mm(mat1, mat2)
    return _FUNCTIONS["_sparse_mm"](mat1, mat2)


def _reduced(mat1: Any, mat2: Any, reduce: str) -> Any:
    """Each row's terms, reduced: those of rows without values are 0."""
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    if mat1.layout is not taeda.sparse_csr:
        raise NotImplementedError(
            "Could not run 'aten::_sparse_mm_reduce_impl' with arguments from the 'SparseCPU' "
            "backend: sparse.mm with reduce takes a torch.sparse_csr matrix."
        )
    starts = mat1.crow_indices()
    rows = taeda.repeat_interleave(starts.diff())
    terms = mat1.values().unsqueeze(1) * mat2[mat1.col_indices()]
    out = terms.new_zeros(mat1.size(0), mat2.size(1))
    kind = {"max": "amax", "min": "amin"}.get(reduce, reduce)
    index = rows.unsqueeze(1).expand_as(terms)
    return out.scatter_reduce(0, index, terms, kind, include_self=False)


def addmm(
    input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * input + alpha * mat1 @ mat2 of a sparse `mat1`, whose gradient has its pattern."""
    return _FUNCTIONS["_sparse_addmm"](input, mat1, mat2, beta=beta, alpha=alpha)


@_C._overridable
def spmm(input: Any, mat2: Any) -> Any:
    """torch.mm under the name it has for sparse matrices."""
    return taeda.mm(input, mat2)


dsmm = spmm


@_C._overridable
def hspmm(mat1: Any, mat2: Any) -> Any:
    """The product of a sparse and a dense matrix as a torch.sparse_coo tensor of rows."""
    filled = taeda.unique(mat1.coalesce().indices()[0])
    rows = taeda.mm(mat1, mat2).index_select(0, filled)
    size = (mat1.size(0), mat2.size(1))
    return taeda.sparse_coo_tensor(filled.unsqueeze(0), rows, size)


hsmm = hspmm


def _every_element(dense: Any, rows: Any) -> Any:
    """A torch.sparse_coo matrix of all elements of some rows, zeros among them."""
    width = dense.size(1)
    down = rows.repeat_interleave(width)
    along = taeda.arange(width, device=dense.device).repeat(rows.numel())
    values = dense.index_select(0, rows).reshape(-1)
    return taeda.sparse_coo_tensor(taeda.stack([down, along]), values, tuple(dense.shape))


@_C._overridable
def sspaddmm(self: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * self + alpha * mat1 @ mat2 of sparse `self` and `mat1`, a torch.sparse_coo tensor."""
    rows = taeda.unique(mat1.coalesce().indices()[0])
    product = _every_element(taeda.mm(mat1, mat2) * alpha, rows)
    scaled = self * beta
    indices = taeda.cat([scaled._indices(), product._indices()], 1)
    values = taeda.cat([scaled._values(), product._values()])
    return taeda.sparse_coo_tensor(indices, values, tuple(product.shape))


@_C._overridable
def smm(input: Any, mat: Any) -> Any:
    """The product of a sparse and a dense matrix, as a torch.sparse_coo tensor."""
    empty = taeda.sparse_coo_tensor((input.size(0), mat.size(1)), dtype=input.dtype)
    return sspaddmm(empty, input, mat, beta=0)


@_C._overridable
def saddmm(input: Any, mat1: Any, mat2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """beta * input + alpha * mat1 @ mat2 of a dense `input` and a sparse `mat1`."""
    return addmm(input, mat1, mat2, beta=beta, alpha=alpha)
