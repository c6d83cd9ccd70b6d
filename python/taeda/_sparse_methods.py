"""Tensor's methods for sparse layouts."""

from __future__ import annotations

from taeda import _C
from taeda._arguments import require_int
from taeda._C import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

METHODS: dict = {}
_LAYOUT_NAMES = {
    _C.strided: "Strided",
    _C.sparse_coo: "Sparse",
    _C.sparse_csr: "SparseCsr",
    _C.sparse_csc: "SparseCsc",
    _C.sparse_bsr: "SparseBsr",
    _C.sparse_bsc: "SparseBsc",
}
_WORDS = {
    _C.sparse_csr: "csr",
    _C.sparse_csc: "csc",
    _C.sparse_bsr: "bsr",
    _C.sparse_bsc: "bsc",
}
_BY_ROWS = (_C.sparse_csr, _C.sparse_bsr)
_BY_COLUMNS = (_C.sparse_csc, _C.sparse_bsc)


def _method(function: Any) -> Any:
    METHODS[function.__name__] = _C._overridable(function)
    return function


def _expect(self: Tensor, name: str, kind: str, layouts: tuple) -> None:
    if self.layout not in layouts:
        found = _LAYOUT_NAMES[self.layout]
        raise RuntimeError(f"{name} expected {kind} tensor layout but got {found}")


def _expect_coalesced(self: Tensor, name: str) -> None:
    if self.layout is _C.sparse_coo and not _C._sparse_metadata(self)[3]:
        raise RuntimeError(
            f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
        )


@_method
def sparse_dim(self: Tensor) -> int:
    """Number of dimensions that coordinates count; 0 of a strided tensor."""
    return 0 if self.layout is _C.strided else _C._sparse_metadata(self)[0]


@_method
def dense_dim(self: Tensor) -> int:
    """Number of dimensions of one value; all of a strided tensor."""
    return self.dim() if self.layout is _C.strided else _C._sparse_metadata(self)[1]


@_method
def _dimI(self: Tensor) -> int:
    """Number of sparse dimensions."""
    return _C._sparse_metadata(self)[0]


@_method
def _dimV(self: Tensor) -> int:
    """Number of dense dimensions."""
    return _C._sparse_metadata(self)[1]


@_method
def _nnz(self: Tensor) -> int:
    """Number of values of a sparse tensor: of one batch, where it has batches."""
    if self.layout is _C.strided:
        raise NotImplementedError(
            "Could not run 'aten::_nnz' with arguments from the 'CPU' backend."
        )
    return _C._sparse_metadata(self)[2]


@_method
def is_coalesced(self: Tensor) -> bool:
    """Whether the coordinates of a torch.sparse_coo tensor are known to be sorted and to differ."""
    _expect(self, "is_coalesced", "sparse coordinate", (_C.sparse_coo,))
    return _C._sparse_metadata(self)[3]


@_method
def coalesce(self: Tensor) -> Tensor:
    """The torch.sparse_coo tensor with sorted coordinates, the values of equal ones summed.

    >>> torch.sparse_coo_tensor([[1, 0, 1]], [1., 2., 3.], (2,)).coalesce().values()
    tensor([2., 4.])
    """
    _expect(self, "coalesce", "sparse coordinate", (_C.sparse_coo,))
    return self if _C._sparse_metadata(self)[3] else self._sparse_coalesce()


@_method
def indices(self: Tensor) -> Tensor:
    """The coordinates of a coalesced tensor, int64 [sparse_dim, nnz], without a copy."""
    _expect(self, "indices", "sparse coordinate", (_C.sparse_coo,))
    _expect_coalesced(self, "indices")
    return self._indices()


@_method
def values(self: Tensor) -> Tensor:
    """The values of a sparse tensor, without a copy; differentiable."""
    if self.layout is _C.strided:
        _expect(self, "values", "sparse", ())
    _expect_coalesced(self, "values")
    return _C._by_owner["torch"]["_sparse_values"](self)


def _part(name: str, kind: str, layouts: tuple, plain: bool) -> None:
    def method(self: Tensor) -> Tensor:
        _expect(self, name, kind, layouts)
        return _C._by_owner["torch"]["_sparse_compressed"](self, plain)

    method.__name__ = method.__qualname__ = name
    what = "The indices in the lines" if plain else "Where each line begins"
    method.__doc__ = f"{what} of a {kind} tensor, without a copy; RuntimeError for others."
    _method(method)


_part("crow_indices", "sparse row compressed", _BY_ROWS, False)
_part("col_indices", "sparse row compressed", _BY_ROWS, True)
_part("ccol_indices", "sparse column compressed", _BY_COLUMNS, False)
_part("row_indices", "sparse column compressed", _BY_COLUMNS, True)


@_method
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """A strided tensor of the same elements; the tensor itself where it is one.

    Args:
        dtype: of a strided tensor's result.
        masked_grad: whether the gradient of a sparse tensor has its pattern (default True).
    """
    if self.layout is _C.strided:
        return self if dtype is None else self.to(dtype)
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    return self._to_dense(None, masked_grad)


def _check_dims(name: str, argument: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RuntimeError(
            f"{name}: {argument} argument must be in [{low},{high}] range, but {value} is given"
        )


@_method
def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Tensor:
    """The tensor in a sparse layout, of the elements that are not 0.

    Args:
        sparse_dim: how many dimensions the coordinates of a torch.sparse_coo tensor count (all).
        layout: torch.sparse_coo, the default, or a compressed layout.
        blocksize: height and width of the blocks of torch.sparse_bsr and torch.sparse_bsc.
        dense_dim: number of dense dimensions of a compressed layout (0).

    >>> torch.tensor([0, 3]).to_sparse().indices()
    tensor([[1]])
    """
    layout = _C.sparse_coo if layout is None else layout
    if layout is self.layout:
        return self
    if layout is _C.strided:
        return self.to_dense()
    if layout is not _C.sparse_coo:
        return _compressed(self, layout, blocksize, dense_dim)
    if sparse_dim is None:
        return self._to_sparse_coo(self.dim() - (self.dense_dim() if self._is_any_sparse() else 0))
    require_int("to_sparse", "sparse_dim", sparse_dim)
    low = 1 if self.dim() else 0
    if not low <= sparse_dim <= self.dim():
        _check_dims("dense_to_sparse", "sparse_dim", sparse_dim, 0, self.dim())
    return self._to_sparse_coo(sparse_dim)


@_method
def _is_any_sparse(self: Tensor) -> bool:
    """Whether the layout is a sparse one."""
    return self.layout is not _C.strided


def _compressed(self: Tensor, layout: Any, blocksize: Any, dense_dim: int | None) -> Tensor:
    word, name = _WORDS[layout], f"dense_to_sparse_{_WORDS[layout]}"
    block: tuple = ()
    if layout in (_C.sparse_bsr, _C.sparse_bsc):
        if blocksize is None:
            raise RuntimeError(
                f"dense_to_sparse: conversion from {_LAYOUT_NAMES[self.layout]} to "
                f"{_LAYOUT_NAMES[layout]} without blocksize argument given is not supported"
            )
        block = (blocksize, blocksize) if isinstance(blocksize, int) else tuple(blocksize)
        size = self.shape[-2 - (dense_dim or 0) :][:2]
        if size[0] % block[0] or size[1] % block[1]:
            raise RuntimeError(
                f"{name}: tensor sparse size ({size[0]},{size[1]}) must be divisible by given "
                f"blocksize ({block[0]},{block[1]})"
            )
    if self.dim() < 2:
        raise RuntimeError(f"{name}: expected a tensor of at least 2 dimensions, got {self.dim()}")
    if dense_dim is None:
        dense_dim = self.dense_dim() if self._is_any_sparse() else 0
    _check_dims(name, "dense_dim", dense_dim, 0, self.dim() - 2)
    return self._to_sparse_compressed(word, block, dense_dim)


@_method
def to_sparse_coo(self: Tensor) -> Tensor:
    """The tensor in layout torch.sparse_coo."""
    return self.to_sparse()


@_method
def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in layout torch.sparse_csr.

    >>> torch.tensor([[0., 2.], [3., 0.]]).to_sparse_csr().col_indices()
    tensor([1, 0])
    """
    return self.to_sparse(layout=_C.sparse_csr, dense_dim=dense_dim)


@_method
def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Tensor:
    """The tensor in layout torch.sparse_csc."""
    return self.to_sparse(layout=_C.sparse_csc, dense_dim=dense_dim)


@_method
def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in layout torch.sparse_bsr, of blocks with an element that is not 0."""
    return self.to_sparse(layout=_C.sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


@_method
def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Tensor:
    """The tensor in layout torch.sparse_bsc, of blocks with an element that is not 0."""
    return self.to_sparse(layout=_C.sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


@_method
def sparse_resize_and_clear_(self: Tensor, size: Any, sparse_dim: int, dense_dim: int) -> Tensor:
    """Gives a torch.sparse_coo tensor other sizes and takes all its values away."""
    return self.zero_().sparse_resize_(size, sparse_dim, dense_dim)


@_method
def smm(self: Tensor, mat: Tensor) -> Tensor:
    """The product with a dense matrix, as a torch.sparse_coo tensor."""
    from taeda.sparse import _products

    return _products.smm(self, mat)


@_method
def sspaddmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """beta * self + alpha * mat1 @ mat2 of sparse `self` and `mat1`, a torch.sparse_coo tensor."""
    from taeda.sparse import _products

    return _products.sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)
