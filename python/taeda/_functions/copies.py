"""Parts of a tensor as copies, into memory of the caller's where `out` says so."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import taeda as torch
from taeda import _C, Tensor
from taeda._C import _overridable

_functions = _C._by_owner["_C._VariableFunctions"]
Parts = Sequence[Tensor]


def _checked(function: str, parts: Parts, out: Parts) -> None:
    if not isinstance(out, (list, tuple)):
        raise TypeError(
            f"{function}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}"
        )
    for index, tensor in enumerate(out):
        if not isinstance(tensor, Tensor):
            raise TypeError(
                f"{function}(): expected Tensor as element {index} in argument 'out', but got "
                f"{type(tensor).__name__}"
            )
    if len(out) != len(parts):
        raise RuntimeError(
            f"{function}() expected an out= argument of size {len(parts)}, got size {len(out)}"
        )


def write(function: str, parts: Parts, out: Parts) -> None:
    """Each part into its tensor of `out`, which is resized and has the part's dtype."""
    _checked(function, parts, out)
    for part, tensor in zip(parts, out, strict=True):
        if tensor.dtype != part.dtype:
            raise RuntimeError(
                f"{function}(): Expected out tensor to have dtype {part.dtype}, but got "
                f"{tensor.dtype} instead"
            )
    with torch.no_grad():
        for part, tensor in zip(parts, out, strict=True):
            _resize(function, tensor, part.shape)
            tensor.copy_(part)


def _resize(function: str, tensor: Tensor, size: torch.Size) -> None:
    if tensor.shape == size:
        return
    if tensor.numel():
        warnings.warn(
            "An output with one or more elements was resized since it had shape "
            f"{list(tensor.shape)}, which does not match the required output shape {list(size)}: "
            f"out= of {function}. This behavior is deprecated, and in a future PyTorch release "
            "outputs will not be resized unless they have zero elements.",
            stacklevel=4,
        )
    tensor.resize_(size)


@_overridable
def split_copy(
    self: Tensor, split_size: int, dim: int = 0, *, out: Parts | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of consecutive parts of a dimension, as `split` cuts it; None where they go to `out`,
    whose tensors have sizes that the parts broadcast to.

    >>> torch.split_copy(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    if out is None:
        return _functions["split_copy"](self, split_size, dim)
    parts = self.detach().split(split_size, dim)
    _checked("split_copy", parts, out)
    with torch.no_grad():
        for part, tensor in zip(parts, out, strict=True):
            tensor.copy_(part)
    return None


@_overridable
def split_with_sizes_copy(
    self: Tensor, split_sizes: Sequence[int], dim: int = 0, *, out: Parts | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of consecutive parts of the given sizes along a dimension; None where they go to
    `out`.

    >>> out = [torch.empty(0, dtype=torch.int64) for _ in range(2)]
    >>> torch.split_with_sizes_copy(torch.arange(3), (1, 2), out=out)
    >>> out
    [tensor([0]), tensor([1, 2])]
    """
    if out is None:
        return _functions["split_with_sizes_copy"](self, split_sizes, dim)
    parts = self.detach().split_with_sizes(split_sizes, dim)
    write("split_with_sizes_copy", parts, out)
    return None


@_overridable
def unbind_copy(
    self: Tensor, dim: int = 0, *, out: Parts | None = None
) -> tuple[Tensor, ...] | None:
    """Copies of all slices along a dimension; None where they go to `out`.

    >>> torch.unbind_copy(torch.tensor([3, 4]))
    (tensor(3), tensor(4))
    """
    if out is None:
        return _functions["unbind_copy"](self, dim)
    if torch.is_grad_enabled() and any(getattr(t, "requires_grad", False) for t in out):
        raise RuntimeError(
            "unbind_copy(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    write("unbind_copy", self.detach().unbind(dim), out)
    return None
