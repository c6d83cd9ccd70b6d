"""Nested tensors: batches of tensors of different sizes, without padding.

>>> x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
>>> x.sum(1)
tensor([[2., 2., 2.],
        [1., 1., 1.]])
>>> torch.nested.to_padded_tensor(x, 0.0).shape
torch.Size([2, 2, 3])

The jagged layout, in which one dimension is ragged, is the one to use; the strided one, PyTorch's
first and still its default, runs each function tensor by tensor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.nested._strided import StridedNestedTensor
from taeda.nested._tensor import NestedTensor
from taeda.nn import functional as F

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]


def nested_tensor(
    tensor_list: Sequence[Any],
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A leaf with the values of a list of tensors or of what torch.tensor takes.

    They must have as many dimensions each; in the jagged layout, they differ in one size at most.
    """
    parts = [
        t.detach().to(device, dtype) if isinstance(t, Tensor) else _tensor(t, dtype, device)
        for t in tensor_list
    ]
    if layout is None or layout is taeda.strided:
        return StridedNestedTensor([p.clone().requires_grad_(requires_grad) for p in parts])
    found = _jagged(parts, layout)
    return found.requires_grad_(requires_grad)


def _tensor(data: Any, dtype: Any, device: Any) -> Tensor:
    return taeda.tensor(data, dtype=dtype, device=device)


def as_nested_tensor(ts: Any, dtype: Any = None, device: Any = None, layout: Any = None) -> Tensor:
    """A nested tensor to whose parts gradients lead: of a list, or of the rows of a tensor."""
    is_list = isinstance(ts, list | tuple) and all(isinstance(t, Tensor) for t in ts)
    if not is_list and not isinstance(ts, Tensor):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of "
            "tensors "
        )
    if isinstance(ts, NestedTensor | StridedNestedTensor):
        if ts.layout is not (taeda.strided if layout is None else layout):
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not supported"
            )
        return ts.to(device, dtype)
    if isinstance(ts, Tensor) and ts.dim() < 1:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 0")
    parts = [t.to(device, dtype) for t in ts]
    if layout is None or layout is taeda.strided:
        return StridedNestedTensor(parts)
    return _jagged(parts, layout)


def _jagged(parts: list[Tensor], layout: Any) -> NestedTensor:
    """The tensors one after the other; the ragged dimension is the first in which they differ."""
    if layout is not taeda.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if len({p.dim() for p in parts}) != 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same dim"
        )
    if parts[0].dim() == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    differ = [d for d, sizes in enumerate(zip(*(p.shape for p in parts))) if len({*sizes}) > 1]
    if len(differ) > 1:
        raise RuntimeError(
            "When constructing a nested tensor, all tensors in list must have the same sizes "
            "except along one dimension"
        )
    at = differ[0] if differ else 0
    lengths = taeda.tensor([p.size(at) for p in parts], device=parts[0].device)
    return NestedTensor(taeda.cat(parts, at), _offsets_of(lengths), _ragged_idx=at + 1)


def _offsets_of(lengths: Tensor) -> Tensor:
    return F.pad(lengths.cumsum(0), (1, 0))


def nested_tensor_from_jagged(
    values: Tensor,
    offsets: Tensor | None = None,
    lengths: Tensor | None = None,
    jagged_dim: int | None = None,
    min_seqlen: int | None = None,
    max_seqlen: int | None = None,
) -> Tensor:
    """A view of `values`: the tensors begin at `offsets`, or lie one after the other.

    With both, tensor i has the `lengths[i]` elements from `offsets[i]` on.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError(
                "nested_tensor_from_jagged(): At least one of offsets or lengths is required."
            )
        offsets, lengths = _offsets_of(lengths), None
    jagged_dim = 1 if jagged_dim is None else jagged_dim
    if jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    return NestedTensor(values, offsets, lengths=lengths, _ragged_idx=jagged_dim)


def narrow(
    tensor: Tensor,
    dim: int,
    start: int | Tensor,
    length: int | Tensor,
    layout: Any = taeda.strided,
) -> Tensor:
    """A view of the elements ``start[i]`` to ``start[i] + length[i]`` of each row of `tensor`."""
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, int | Tensor):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    starts, lengths = (
        v if isinstance(v, Tensor) else taeda.full((tensor.size(0),), v) for v in (start, length)
    )
    if layout is taeda.strided:
        pairs = zip(tensor, starts.tolist(), lengths.tolist(), strict=True)
        return StridedNestedTensor([row.narrow(dim - 1, s, n) for row, s, n in pairs])
    if layout is not taeda.jagged:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    width = tensor.size(1)
    begin = taeda.arange(tensor.size(0), device=tensor.device) * width + starts
    end = begin[-1:] + lengths[-1:]
    return NestedTensor(tensor.flatten(0, 1), taeda.cat([begin, end]), lengths=lengths)


def masked_select(tensor: Tensor, mask: Tensor) -> Tensor:
    """The elements of each row where `mask` is True, with the rows' numbers of them ragged."""
    if tensor.layout is not taeda.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}"
        )
    if mask.layout is not taeda.strided:
        raise RuntimeError(
            f"torch.nested.masked_select requires a strided mask, given {mask.layout}"
        )
    mask = mask.expand_as(tensor)
    lengths = mask.sum(tuple(range(1, tensor.dim())))
    return NestedTensor(tensor.masked_select(mask), _offsets_of(lengths))


def to_padded_tensor(input: Any, padding: float, output_size: Any = None) -> Tensor:
    """A dense tensor, with `padding` after the elements of each tensor."""
    return input.to_padded_tensor(padding, output_size)
