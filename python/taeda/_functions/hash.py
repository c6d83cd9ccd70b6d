"""torch.hash_tensor: a number that changes when an element does."""

from __future__ import annotations

import math

import taeda as torch
from taeda import _C, Tensor
from taeda._arguments import require_bool, require_tensors
from taeda._C import _overridable
from taeda._functions.copies import write


def _bits(self: Tensor) -> Tensor:
    """The elements as 64-bit floats or integers, seen as integers."""
    if self.is_complex() or self.dtype == torch.uint64:
        raise NotImplementedError(f"\"xor_sum_cpu\" not implemented for '{self.dtype._class_name}'")
    if self.is_floating_point():
        return self.double().view(torch.int64)
    return self.long()


def _check(self: Tensor, dim: list[int] | tuple, mode: int) -> None:
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if not dim and not self.numel():
        raise RuntimeError(
            "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify "
            "the reduction dim with the 'dim' argument."
        )
    for d in dim:
        if not self.dim() and d not in (-1, 0):
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-1, 0], but got {d})"
            )
        if self.dim() and not self.size(d):
            raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")


def _hash_tensor(
    self: Tensor, dim: list[int] | tuple = (), *, keepdim: bool = False, mode: int = 0
) -> Tensor:
    """The exclusive or of the elements' bits over `dim`, or over all; uint64."""
    _check(self, dim, mode)
    reduced = sorted({d % max(self.dim(), 1) for d in dim} if dim else range(self.dim()))
    kept = [d for d in range(self.dim()) if d not in reduced]
    rows = _bits(self).permute(*kept, *reduced) if self.dim() else _bits(self)
    sizes = [self.size(d) for d in kept]
    rows = rows.reshape(*sizes, math.prod(self.size(d) for d in reduced) if self.dim() else 1)
    while (size := rows.size(-1)) > 1:  # each half with the other
        half = rows[..., : size // 2] ^ rows[..., size // 2 : size // 2 * 2]
        rows = torch.cat([half, rows[..., -1:]], -1) if size % 2 else half
    result = rows.squeeze(-1).view(torch.uint64)
    for d in reduced if keepdim and self.dim() else ():
        result = result.unsqueeze(d)
    return result


_operator = _C._define_composite(
    "aten::hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    _hash_tensor,
)


@_overridable
def hash_tensor(
    self: Tensor,
    dim: int | list[int] | tuple = (),
    *,
    keepdim: bool = False,
    mode: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """The exclusive or of the elements' bits over `dim`, or over all; uint64, as `out` is.

    >>> torch.hash_tensor(torch.tensor([5, 3]))
    tensor(6, dtype=torch.uint64)
    """
    require_tensors("hash_tensor", input=self)
    require_bool("hash_tensor", "keepdim", keepdim)
    wrong = dim if not isinstance(dim, (int, tuple, list)) else None
    for d in dim if isinstance(dim, (tuple, list)) else ():
        wrong = d if not isinstance(d, int) else wrong
    if wrong is not None:
        raise TypeError(
            f"hash_tensor(): argument 'dim' must be tuple of ints, not {type(wrong).__name__}"
        )
    result = _operator(self, dim, keepdim=keepdim, mode=mode)
    if out is None:
        return result
    write("hash_tensor", (result,), (out,))
    return out
