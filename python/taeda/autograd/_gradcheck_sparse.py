"""gradcheck of sparse inputs and outputs, by dense leaves from which the inputs are made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.autograd import Function


def _pattern(x: Tensor) -> Tensor:
    """Where a sparse matrix or tensor has values, as a dense bool tensor of its sizes."""
    coo = x.detach().to_sparse() if x.layout is not taeda.sparse_coo else x.detach()
    ones = taeda.ones_like(coo._values(), dtype=taeda.float64)
    return taeda.sparse_coo_tensor(coo._indices(), ones, x.shape).to_dense() != 0


def _from_values(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """(the values as a leaf, the sparse tensor with others in their place)"""
    if x.layout is taeda.sparse_coo:
        indices, coalesced = x._indices(), x.is_coalesced()
        return x._values().detach().clone(), lambda values: taeda.sparse_coo_tensor(
            indices, values, x.shape, is_coalesced=coalesced
        )
    by_rows = x.layout in (taeda.sparse_csr, taeda.sparse_bsr)
    parts = (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
    return x.values().detach().clone(), lambda values: taeda.sparse_compressed_tensor(
        *parts, values, x.shape, layout=x.layout
    )


class _Sparse(Function):
    """A dense tensor as a sparse one with values where `pattern` is set or it is not zero."""

    @staticmethod
    def forward(ctx: Any, dense: Tensor, pattern: Tensor, like: Tensor) -> Tensor:
        kept = (pattern | (dense != 0)).nonzero().t()
        values = dense[tuple(kept)]
        made = taeda.sparse_coo_tensor(kept, values, dense.shape, is_coalesced=True)
        if like.layout is taeda.sparse_coo:
            return made
        blocked = like.layout in (taeda.sparse_bsr, taeda.sparse_bsc)
        blocksize = like.values().shape[1:3] if blocked else None
        return made.to_sparse(layout=like.layout, blocksize=blocksize)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple:  # type: ignore[override]
        """What the gradient has outside of the pattern counts."""
        is_sparse = gradient._is_any_sparse()
        return gradient.to_dense() if is_sparse else gradient, None, None


def _from_dense(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The same of all elements, whether they have a value in `x` or not."""
    pattern = _pattern(x)
    leaf = x.detach().to_dense()
    return leaf, lambda dense: _Sparse.apply(dense, pattern, x.detach())


def _is_sparse(value: Any) -> bool:
    return isinstance(value, Tensor) and value._is_any_sparse()


def dense_form(func: Callable, inputs: tuple, masked: bool) -> tuple[Callable, tuple]:
    """A function of dense tensors, and they, whose gradients are those of `func` at `inputs`.

    With `masked` the elements without a value are constants, else they are variables of value 0.
    """
    leaves: list[Any] = list(inputs)
    makers: dict[int, Callable[[Tensor], Tensor]] = {}
    for i, x in enumerate(inputs):
        if _is_sparse(x) and x.requires_grad:
            leaf, makers[i] = (_from_values if masked else _from_dense)(x)
            leaves[i] = leaf.requires_grad_()

    def dense(*given: Any) -> Any:
        made = [makers[i](x) if i in makers else x for i, x in enumerate(given)]
        found = func(*made)
        several = isinstance(found, (tuple, list))
        results = [
            y.to_dense(masked_grad=masked) if _is_sparse(y) else y
            for y in (found if several else [found])
        ]
        return tuple(results) if several else results[0]

    return dense, tuple(leaves)
