"""Rows of sparse matrices: their index at each element (COO) or where each begins (CSR)."""

from __future__ import annotations

import taeda as torch
from taeda import _C, Tensor


def _coo_to_csr(rows: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """Where each of `size` rows begins among elements whose row indices ascend, and the end."""
    if rows.dim() != 1:
        raise RuntimeError(
            f"Input is supposed to be a vector, but got {rows.dim()} dimensional tensor."
        )
    if rows.is_floating_point() or rows.is_complex():
        raise NotImplementedError(
            f'"convert_indices_from_coo_to_csr_cpu" not implemented for {rows.dtype}'
        )
    row = torch.arange(size + 1, device=rows.device)
    if not size:  # of no rows there is none that an element could belong to
        return row.to(torch.int32) if out_int32 else row
    return torch.searchsorted(rows.long(), row, out_int32=out_int32)


def _csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The row and the column index of each element, or the other way round: [2, elements]."""
    dtype = torch.int32 if out_int32 else torch.int64
    row = torch.arange(len(crow_indices) - 1, device=crow_indices.device)
    pair = [row.repeat_interleave(crow_indices.diff().long()), col_indices]
    return torch.stack([part.to(dtype) for part in (pair[::-1] if transpose else pair)])


_convert_indices_from_coo_to_csr = _C._define_composite(
    "aten::_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> "
    "Tensor",
    _coo_to_csr,
)
_convert_indices_from_csr_to_coo = _C._define_composite(
    "aten::_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, "
    "bool out_int32=False, bool transpose=False) -> Tensor",
    _csr_to_coo,
)
