"""Functions for sparse tensors: products, sums, softmax, and matrices of diagonals.

Sparse tensors are made by torch.sparse_coo_tensor, torch.sparse_csr_tensor and their like, or by
``Tensor.to_sparse``. The gradient of a sparse argument of these functions has its pattern.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import taeda
from taeda import _C, _missing
from taeda.sparse._invariants import check_sparse_tensor_invariants
from taeda.sparse._products import addmm, mm
from taeda.sparse._types import TENSOR_TYPES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from taeda import Tensor, dtype, layout

globals().update(_C._by_owner["sparse"])
globals().update(TENSOR_TYPES)

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]


def sum(
    input: Tensor, dim: int | Sequence[int] | None = None, dtype: dtype | None = None
) -> Tensor:
    """Sums of a torch.sparse_coo tensor over dimensions; of all elements where none are given.

    Args:
        input: the tensor.
        dim: one dimension or several.
        dtype: of the result.

    Returns:
        A sparse tensor, or a dense one where no sparse dimension is left.

    >>> torch.sparse.sum(torch.tensor([[1., 0.], [2., 3.]]).to_sparse(), 0).values()
    tensor([3., 3.])
    """
    if dtype is not None:
        input = input.to(dtype)
    dims = range(input.dim()) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if not dims:
        return input
    if input.is_sparse:
        return _C._by_owner["torch"]["_sparse_sum"](input, list(dims))
    return input.sum() if dim is None else input.sum(dim)


def softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Softmax along a dimension, over the values of a torch.sparse_coo tensor alone: what it does
    not hold counts as minus infinity.

    >>> torch.sparse.softmax(torch.tensor([[2., 0.], [3., 3.]]).to_sparse(), 1).values()
    tensor([1.0000, 0.5000, 0.5000])
    """
    input = input if dtype is None else input.to(dtype)
    return _C._by_owner["torch"]["_sparse_softmax"](input, dim)


def log_softmax(input: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The logarithm of softmax(input, dim), over the values alone."""
    input = input if dtype is None else input.to(dtype)
    return _C._by_owner["torch"]["_sparse_log_softmax"](input, dim)


def spdiags(
    diagonals: Tensor, offsets: Tensor, shape: Sequence[int], layout: layout | None = None
) -> Tensor:
    """A matrix with rows of `diagonals` as its diagonals.

    Args:
        diagonals: [n, columns]; column j of a row is the element in column j of the matrix.
        offsets: int64 [n], of each diagonal: 0 the main one, positive above it; they differ.
        shape: of the matrix.
        layout: torch.sparse_coo (default), torch.sparse_csr or torch.sparse_csc.

    >>> torch.sparse.spdiags(torch.ones(1, 2), torch.tensor([1]), (2, 2)).to_dense()
    tensor([[0., 1.],
            [0., 0.]])
    """
    rows, columns = shape
    diagonals = diagonals.unsqueeze(0) if diagonals.dim() == 1 else diagonals
    offsets = offsets.unsqueeze(0) if offsets.dim() == 0 else offsets
    if offsets.numel() != diagonals.size(0):
        raise RuntimeError(
            f"Number of diagonals ({diagonals.size(0)}) does not match the number of offsets "
            f"({offsets.numel()})"
        )
    if taeda.unique(offsets).numel() != offsets.numel():
        raise RuntimeError("Offset tensor contains duplicate values")
    if layout not in (None, taeda.sparse_coo, taeda.sparse_csr, taeda.sparse_csc):
        raise RuntimeError(
            f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {layout}"
        )
    column = taeda.arange(min(diagonals.size(1), columns)).expand(offsets.numel(), -1)
    row = column - offsets.unsqueeze(1)
    inside = (row >= 0) & (row < rows)
    values = diagonals[:, : column.size(1)][inside]
    made = taeda.sparse_coo_tensor(
        taeda.stack([row[inside], column[inside]]), values, (rows, columns)
    )
    return made if layout in (None, taeda.sparse_coo) else made.to_sparse(layout=layout)


def as_sparse_gradcheck(gradcheck: Callable[..., bool]) -> Callable[..., bool]:
    """torch.autograd.gradcheck for functions of sparse tensors: their values are what is varied, in
    the pattern that they have (`masked=True`), and dense results are compared."""

    @functools.wraps(gradcheck)
    def checked(func: Any, inputs: Any, **options: Any) -> Any:
        masked = options.pop("masked", False)
        given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        flat = [_varied(x, masked) for x in given]
        parts = tuple(part for part, _ in flat)

        def dense_function(*values: Any) -> Any:
            result = func(*(make(v) for v, (_, make) in zip(values, flat, strict=True)))
            several = isinstance(result, (list, tuple))
            made = tuple(_dense(r) for r in (result if several else (result,)))
            return made if several else made[0]

        return gradcheck(dense_function, parts, **options)

    return checked


def _dense(x: Any) -> Any:
    return x.to_dense() if isinstance(x, taeda.Tensor) and x._is_any_sparse() else x


def _varied(x: Any, masked: bool) -> tuple:
    """What gradcheck varies in the place of `x`, and `x` made of it."""
    if not isinstance(x, taeda.Tensor) or not x._is_any_sparse():
        return x, lambda value: value
    if not masked:
        full = x.detach().to_dense().requires_grad_(x.requires_grad)
        return full, lambda value: value.to_sparse(layout=x.layout)
    pattern = x.detach().coalesce() if x.is_sparse else x.detach()
    values = pattern.values().clone().requires_grad_(x.requires_grad)
    if x.is_sparse:
        return values, lambda v: taeda.sparse_coo_tensor(
            pattern.indices(), v, x.shape, is_coalesced=True
        )
    rows = x.layout in (taeda.sparse_csr, taeda.sparse_bsr)
    first = pattern.crow_indices() if rows else pattern.ccol_indices()
    second = pattern.col_indices() if rows else pattern.row_indices()
    return values, lambda v: taeda.sparse_compressed_tensor(
        first, second, v, x.shape, layout=x.layout
    )


_SEMI_STRUCTURED = (
    "SparseSemiStructuredTensor",
    "SparseSemiStructuredTensorCUSPARSELT",
    "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
)


def __getattr__(name: str) -> Any:
    if name in _SEMI_STRUCTURED:
        from taeda.sparse import semi_structured

        return getattr(semi_structured, name)
    return _missing.attribute(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_SEMI_STRUCTURED, *_missing.names(__name__)})
