"""Views, rearrangement, indexing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda._ops import ops

from .registry import new, of


@of("detach", "lift", "lift_fresh")
def alias(x: Tensor) -> Tensor:
    """The same elements."""
    return ops.aten.alias.default(x)


@of("t")
def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; a vector as it is."""
    return x.permute(1, 0) if x.dim() == 2 else ops.aten.alias.default(x)


@of("transpose.int")
def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    order = list(range(x.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return x.permute(order) if order else ops.aten.alias.default(x)


@of("squeeze", "squeeze.dim")
def squeeze(x: Tensor, dim: int | None = None) -> Tensor:
    """Without dimensions of size 1, or without one."""
    return taeda.squeeze(x, list(range(x.dim())) if dim is None else [dim])


@of("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Joined along a new dimension."""
    dim = dim % (tensors[0].dim() + 1)
    return taeda.cat([x.unsqueeze(dim) for x in tensors], dim)


@of("unbind.int")
def unbind(x: Tensor, dim: int = 0) -> list[Tensor]:
    """What each index of a dimension selects."""
    return [x.select(dim, i) for i in range(x.shape[dim])]


@of("split.Tensor", "unsafe_split.Tensor")
def split(x: Tensor, split_size: int, dim: int = 0) -> list[Tensor]:
    """Parts of equal size, the last of what is left."""
    size = x.shape[dim]
    if split_size == 0 or size == 0:
        return [ops.aten.alias.default(x)]
    sizes = [min(split_size, size - start) for start in range(0, size, split_size)]
    return split_with_sizes(x, sizes, dim)


@of("split_with_sizes", "unsafe_split_with_sizes")
def split_with_sizes(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Parts of given sizes."""
    parts, start = [], 0
    for size in split_sizes:
        parts.append(x.narrow(dim, start, size))
        start += size
    return parts


@of("as_strided_scatter")
def as_strided_scatter(
    x: Tensor,
    src: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None = None,
) -> Tensor:
    """A copy in which what a view shows is replaced."""
    y = x.clone()
    y.as_strided(size, stride, storage_offset).copy_(src)
    return y


@new("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
def split_with_sizes_copy(x: Tensor, split_sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Copies of parts of given sizes."""
    return [part.clone() for part in x.split(list(split_sizes), dim)]


@new("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]")
def unbind_copy(x: Tensor, dim: int = 0) -> list[Tensor]:
    """Copies of what each index of a dimension selects."""
    return [part.clone() for part in x.unbind(dim)]


@new("narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor")
def narrow_copy(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """A copy of a part of a dimension."""
    return x.narrow(dim, start, length).clone()


@of("squeeze_copy.dim")
def squeeze_copy(x: Tensor, dim: int) -> Tensor:
    """A copy without a dimension of size 1."""
    return x.squeeze(dim).clone()


@new("_reshape_alias(Tensor(a) self, SymInt[] size, SymInt[] stride) -> Tensor(a)")
def _reshape_alias(x: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    """A view of other sizes."""
    return x.view(size)


@of("fill.Scalar", "fill.Tensor")
def fill(x: Tensor, value: Any) -> Tensor:
    """A tensor of equal elements, like another."""
    if isinstance(value, Tensor):
        return value.to(x.dtype).expand(x.shape).clone()
    return taeda.full_like(x, value)


@of("fill_.Scalar", "fill_.Tensor")
def fill_(x: Tensor, value: Any) -> Tensor:
    """All elements become one value."""
    return x.copy_(fill(x, value))


@new("zero(Tensor self) -> Tensor")
def zero(x: Tensor) -> Tensor:
    """A tensor of zeros, like another."""
    return taeda.full_like(x, 0)


@of("zero_")
def zero_(x: Tensor) -> Tensor:
    """All elements become 0."""
    return x.copy_(taeda.full_like(x, 0))


def _at(x: Tensor, dim: int, index: Tensor) -> list[Tensor | None]:
    """An index of one dimension as indices of all, the others whole."""
    return [*[None] * (dim % max(x.dim(), 1)), index]


@of("index_add")
def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """x with alpha source added where a dimension's index says"""
    source = source if alpha == 1 else source * alpha
    put = ops.aten.index_put.default
    if x.dim() == 0:
        return put(x.unsqueeze(0), [index], source, True).squeeze(0)
    return put(x, _at(x, dim, index), source, True)


@of("index_copy")
def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """x with source written where a dimension's index says"""
    put = ops.aten.index_put.default
    if x.dim() == 0:
        return put(x.unsqueeze(0), [index], source).squeeze(0)
    return put(x, _at(x, dim, index), source)


@of("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """x with a value written where a dimension's index says"""
    if not isinstance(value, Tensor):
        value = taeda.scalar_tensor(value, dtype=x.dtype, device=x.device)
    put = ops.aten.index_put.default
    if x.dim() == 0:
        return put(x.unsqueeze(0), [index], value.to(x.dtype)).squeeze(0)
    return put(x, _at(x, dim, index), value.to(x.dtype))


@new("_unsafe_index.Tensor(Tensor self, Tensor?[] indices) -> Tensor")
def _unsafe_index(x: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """x[indices]"""
    return ops.aten.index.Tensor(x, indices)


@new(
    "_unsafe_index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
    "Tensor"
)
def _unsafe_index_put(
    x: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False
) -> Tensor:
    """x with values written, or added, at indices"""
    return ops.aten.index_put.default(x, indices, values, accumulate)


def _clamped(x: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    return [None if i is None else i.clamp(0, n - 1) for i, n in zip(indices, x.shape)]


@new("_unsafe_masked_index(Tensor self, Tensor mask, Tensor?[] indices, Scalar fill) -> Tensor")
def _unsafe_masked_index(x: Tensor, mask: Tensor, indices: Sequence[Any], fill: Any) -> Tensor:
    """x[indices] where the mask is True, else a value"""
    return _unsafe_index(x, _clamped(x, indices)).masked_fill(~mask, fill)


@new(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor?[] indices, "
    "Tensor values) -> Tensor"
)
def _unsafe_masked_index_put_accumulate(
    x: Tensor, mask: Tensor, indices: Sequence[Any], values: Tensor
) -> Tensor:
    """x with values added at indices where the mask is True"""
    return _unsafe_index_put(x, _clamped(x, indices), values.masked_fill(~mask, 0), True)


@of("embedding")
def embedding(weight: Tensor, indices: Tensor, *_: Any, **__: Any) -> Tensor:
    """The rows of a table."""
    rows = taeda.index_select(weight, 0, indices.reshape(-1))
    return rows.view(*indices.shape, weight.shape[1])


@of("embedding_dense_backward")
def embedding_dense_backward(
    g: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    """The rows of g added where their indices say."""
    indices = indices.to(taeda.int64)
    zeros = g.new_zeros((num_weights,))
    put = ops.aten.index_put.default
    if scale_grad_by_freq:
        counts = put(zeros, [indices], taeda.ones_like(indices, dtype=g.dtype), True)
        g = g / counts[indices].unsqueeze(-1)
    g = g.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    return put(g.new_zeros((num_weights, *g.shape[indices.dim() :])), [indices], g, True)


@new("pixel_shuffle(Tensor self, int upscale_factor) -> Tensor")
def pixel_shuffle(x: Tensor, r: int) -> Tensor:
    """Channels become pixels: r r c -> c of r times the height and width."""
    *batch, c, h, w = x.shape
    y = x.reshape(*batch, c // (r * r), r, r, h, w)
    n = len(batch)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return y.permute(order).reshape(*batch, c // (r * r), h * r, w * r)


@new("pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor")
def pixel_unshuffle(x: Tensor, r: int) -> Tensor:
    """Pixels become channels: the inverse of `pixel_shuffle`."""
    *batch, c, h, w = x.shape
    y = x.reshape(*batch, c, h // r, r, w // r, r)
    n = len(batch)
    order = [*range(n), n, n + 2, n + 4, n + 1, n + 3]
    return y.permute(order).reshape(*batch, c * r * r, h // r, w // r)


@new("native_channel_shuffle(Tensor self, SymInt groups) -> Tensor")
@new("channel_shuffle(Tensor self, SymInt groups) -> Tensor")
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Channels of all groups alternate."""
    y = x.reshape(x.shape[0], groups, x.shape[1] // groups, *x.shape[2:])
    return y.transpose(1, 2).reshape(x.shape)


@new("block_diag(Tensor[] tensors) -> Tensor")
def block_diag(tensors: Sequence[Tensor]) -> Tensor:
    """Matrices along the diagonal of one."""
    blocks = [taeda.atleast_2d(x) for x in tensors]
    columns = sum(x.shape[1] for x in blocks)
    rows, before = [], 0
    for x in blocks:
        after = columns - before - x.shape[1]
        rows.append(taeda.nn.functional.pad(x, (before, after)))
        before += x.shape[1]
    return taeda.cat(rows, 0)


@new("column_stack(Tensor[] tensors) -> Tensor")
def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the second dimension, vectors as columns."""
    return taeda.cat([x if x.dim() > 1 else x.reshape(-1, 1) for x in tensors], 1)


@new("trace_backward(Tensor grad, SymInt[] sizes) -> Tensor")
def trace_backward(g: Tensor, sizes: Sequence[int]) -> Tensor:
    """g on the diagonal of zeros"""
    flat = g.new_zeros((sizes[0] * sizes[1],))
    index = taeda.arange(0, flat.numel(), sizes[1] + 1, device=g.device)[: min(sizes)]
    return flat.index_fill(0, index, g).view(sizes)


@new("index_select_backward(Tensor grad, SymInt[] self_sizes, int dim, Tensor index) -> Tensor")
def index_select_backward(g: Tensor, sizes: Sequence[int], dim: int, index: Tensor) -> Tensor:
    """g added to zeros where the index says"""
    return g.new_zeros(sizes).index_add(dim, index, g)


@new(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, SymInt[] sizes, "
    "bool keepdim) -> Tensor"
)
def value_selecting_reduction_backward(
    g: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool
) -> Tensor:
    """g where a reduction took its values, else 0"""
    if not keepdim and len(sizes):
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    return g.new_zeros(sizes).scatter(dim, indices, g)


@new("masked_select_backward(Tensor grad, Tensor input, Tensor mask) -> Tensor")
def masked_select_backward(g: Tensor, x: Tensor, mask: Tensor) -> Tensor:
    """g in the places that a mask chose"""
    x, mask = taeda.broadcast_tensors(x, mask)
    return taeda.zeros_like(x).masked_scatter(mask, g).sum_to_size(x.shape)
