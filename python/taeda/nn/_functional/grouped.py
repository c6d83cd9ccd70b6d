"""Products of groups of rows with a matrix each: the experts of a mixture."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import taeda as torch
from taeda import Tensor

__all__ = ["grouped_mm"]


def _slices(offs: Tensor, groups: int | None) -> list[slice]:
    """From where to where each group goes, of where they end."""
    if groups is not None and offs.numel() != groups:
        raise RuntimeError(f"grouped_mm: {offs.numel()} offsets for {groups} matrices")
    return [slice(*ends) for ends in pairwise([0, *offs.tolist()])]


def _filled(parts: list[Tensor], dim: int, size: int) -> Tensor:
    """The parts one after another, and zeros up to `size`."""
    found = torch.cat(parts, dim)
    rest = size - found.shape[dim]
    if rest <= 0:
        return found
    shape = list(found.shape)
    shape[dim] = rest
    return torch.cat([found, found.new_zeros(shape)], dim)


def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """Products of groups of matrices; `offs` says where each group of a matrix ends.

    (G, m, k) and (G, k, n) give (G, m, n); rows (m, k) in groups and (G, k, n) give (m, n);
    (G, m, k) and columns (k, n) in groups give (m, n); with both matrices, groups of the inner
    dimension give (G, m, n).

    >>> import taeda as torch
    >>> rows, experts = torch.ones(3, 2), torch.stack([torch.eye(2), 2 * torch.eye(2)])
    >>> offs = torch.tensor([1, 3], dtype=torch.int32)
    >>> torch.nn.functional.grouped_mm(rows, experts, offs=offs)
    tensor([[1., 1.],
            [2., 2.],
            [2., 2.]])
    """
    ranks = (mat_a.dim(), mat_b.dim())
    if not set(ranks) <= {2, 3}:
        raise RuntimeError("mat_a and mat_b must have 2 or 3 dimensions")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if ranks == (3, 3):
        if offs is not None:
            raise RuntimeError("Have to provide offsets only if there is a 2d matrix")
        result = mat_a @ mat_b
    elif offs is None:
        raise RuntimeError("Have to provide offsets if there is a 2d matrix")
    elif ranks == (2, 3):
        pairs = zip(_slices(offs, mat_b.shape[0]), mat_b, strict=True)
        result = _filled([mat_a[part] @ each for part, each in pairs], 0, mat_a.shape[0])
    elif ranks == (3, 2):
        pairs = zip(_slices(offs, mat_a.shape[0]), mat_a, strict=True)
        result = _filled([each @ mat_b[:, part] for part, each in pairs], 1, mat_b.shape[1])
    else:
        parts = _slices(offs, None)
        result = torch.stack([mat_a[:, part] @ mat_b[part] for part in parts])
    return result if out_dtype is None else result.to(out_dtype)


def _grouped_mm(
    input: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: Any = None,
) -> Tensor:
    """grouped_mm, as libraries call it as ``torch._grouped_mm``."""
    return grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)
