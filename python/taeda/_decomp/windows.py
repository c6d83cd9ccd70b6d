"""Padding, resampling and pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda._ops import ops

from .registry import new, of


def _offsets(x: Tensor, padding: Sequence[int]) -> list[tuple[int, int, int]]:
    """Of each padded dimension, the first first: its size, what is before it, what is behind."""
    n = len(padding) // 2
    pairs = [(padding[2 * i], padding[2 * i + 1]) for i in reversed(range(n))]
    return [(size, *pair) for size, pair in zip(x.shape[-n:], pairs)]


def _padded(x: Tensor, padding: Sequence[int], index_of: Any) -> Tensor:
    """The elements that `index_of` names for each index from -before to size + behind."""
    for i, (size, before, behind) in enumerate(_offsets(x, padding)):
        index = index_of(taeda.arange(-before, size + behind, device=x.device), size)
        dim = x.dim() - len(padding) // 2 + i
        x = ops.aten._unsafe_index.Tensor(x, [*[None] * dim, index])
    return x


def _reflected(i: Tensor, size: int) -> Tensor:
    return (size - 1) - (size - 1 - i.abs()).abs()


def _summed_back(g: Tensor, x: Tensor, padding: Sequence[int], index_of: Any) -> Tensor:
    """The adjoint of `_padded`: what it read several times is added up."""
    for i, (size, before, behind) in enumerate(_offsets(x, padding)):
        index = index_of(taeda.arange(-before, size + behind, device=x.device), size)
        dim = x.dim() - len(padding) // 2 + i
        sizes = [*g.shape]
        sizes[dim] = size
        put = ops.aten._unsafe_index_put.default
        g = put(g.new_zeros(sizes), [*[None] * dim, index], g, True)
    return g


@of("reflection_pad1d", "reflection_pad2d", "reflection_pad3d")
def reflection_pad(x: Tensor, padding: Sequence[int]) -> Tensor:
    """Mirrored at the edges, which are not repeated."""
    return _padded(x, padding, _reflected)


@of("replication_pad1d", "replication_pad2d", "replication_pad3d")
def replication_pad(x: Tensor, padding: Sequence[int]) -> Tensor:
    """The edges repeated."""
    return _padded(x, padding, lambda i, size: i.clamp(0, size - 1))


for _n in (1, 2, 3):
    _pair = f"(Tensor grad_output, Tensor self, SymInt[{2 * _n}] padding) -> Tensor"

    @new(f"reflection_pad{_n}d_backward{_pair}")
    def _reflection_backward(g: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
        return _summed_back(g, x, padding, _reflected)

    @new(f"replication_pad{_n}d_backward{_pair}")
    def _replication_backward(g: Tensor, x: Tensor, padding: Sequence[int]) -> Tensor:
        return _summed_back(g, x, padding, lambda i, size: i.clamp(0, size - 1))


@of("constant_pad_nd")
def constant_pad_nd(x: Tensor, pad: Sequence[int], value: Any = 0) -> Tensor:
    """A value around a tensor; negative numbers cut."""
    n = len(pad) // 2
    pairs = [(pad[2 * i], pad[2 * i + 1]) for i in reversed(range(n))]
    first = x.dim() - n
    sizes = [*x.shape[:first], *(s + a + b for s, (a, b) in zip(x.shape[first:], pairs))]
    result = taeda.full(sizes, value, dtype=x.dtype, device=x.device)
    inner = result
    for i, (before, behind) in enumerate(pairs):
        inner = inner.narrow(first + i, max(before, 0), inner.shape[first + i] - max(before, 0))
        inner = inner.narrow(first + i, 0, inner.shape[first + i] - max(behind, 0))
        x = x.narrow(first + i, max(-before, 0), x.shape[first + i] - max(-before, 0))
        x = x.narrow(first + i, 0, x.shape[first + i] - max(-behind, 0))
    inner.copy_(x)
    return result


# --- resampling ---


def _sizes(x: Tensor, output_size: Any, scale_factors: Any) -> list[int]:
    if output_size is not None:
        return list(output_size)
    return [int(n * s) for n, s in zip(x.shape[2:], scale_factors)]


def _nearest(x: Tensor, sizes: Sequence[int], scales: Sequence[Any], offset: float) -> Tensor:
    """x at floor((i + offset) size / new size) of every dimension behind the second."""
    count = len(sizes)
    indices: list[Any] = [None, None]
    for i, (size, new_size, scale) in enumerate(zip(x.shape[2:], sizes, scales)):
        ratio = 1.0 / scale if scale else size / new_size
        at = (taeda.arange(new_size, dtype=taeda.float32, device=x.device) + offset) * ratio
        index = at.to(taeda.int64).clamp(max=size - 1)
        indices.append(index.reshape([-1, *[1] * (count - 1 - i)]))
    return ops.aten._unsafe_index.Tensor(x, indices)


def _linear(x: Tensor, sizes: Sequence[int], scales: Sequence[Any], corners: bool) -> Tensor:
    """One dimension behind the second after the other: a weighted mean of two neighbours."""
    dtype = x.dtype
    x = x.float() if dtype in (taeda.float16, taeda.bfloat16) or not dtype.is_floating_point else x
    for i, (size, new_size, scale) in enumerate(zip(x.shape[2:], sizes, scales)):
        at = taeda.arange(new_size, dtype=x.dtype, device=x.device)
        if corners:
            at = at * ((size - 1.0) / (new_size - 1.0) if new_size > 1 else 0.0)
        else:
            ratio = 1.0 / scale if scale else size / new_size
            at = ((at + 0.5) * ratio - 0.5).clamp(min=0.0)
        low = at.to(taeda.int64)
        high = (low + 1).clamp(max=size - 1)
        weight = (at - low).clamp(0.0, 1.0).reshape([-1, *[1] * (len(sizes) - 1 - i)])
        before: list[Any] = [None] * (2 + i)
        left, right = (ops.aten._unsafe_index.Tensor(x, [*before, j]) for j in (low, high))
        x = left + (right - left) * weight
    return x.to(dtype) if dtype.is_floating_point else x.round().to(dtype)


def _resampled(count: int) -> None:
    tail = "SymInt[]? output_size, {}float[]? scale_factors) -> Tensor"
    for name, offset in (("upsample_nearest", 0.0), ("_upsample_nearest_exact", 0.5)):

        @of(f"{name}{count}d")
        def _by_size(x: Tensor, size: Sequence[int], *scales: Any, offset: Any = offset) -> Tensor:
            return _nearest(x, size, scales or [None] * count, offset)

        @new(f"{name}{count}d.vec(Tensor input, {tail.format('')}")
        def _by_either(x: Tensor, size: Any, scales: Any, offset: float = offset) -> Tensor:
            return _nearest(x, _sizes(x, size, scales), scales or [None] * count, offset)

    name = f"upsample_{['', 'linear', 'bilinear', 'trilinear'][count]}{count}d"

    @of(name)
    def _linear_by_size(x: Tensor, size: Sequence[int], corners: bool, *scales: Any) -> Tensor:
        return _linear(x, size, scales or [None] * count, corners)

    @new(f"{name}.vec(Tensor input, {tail.format('bool align_corners, ')}")
    def _linear_by_either(x: Tensor, size: Any, corners: bool, scales: Any) -> Tensor:
        return _linear(x, _sizes(x, size, scales), scales or [None] * count, corners)


for _count in (1, 2, 3):
    _resampled(_count)


def _cubic_weights(t: Tensor) -> list[Tensor]:
    """Those of the four neighbours of a point `t` behind the second, after Keys with a = -0.75."""

    def near(d: Tensor) -> Tensor:
        return ((1.25 * d - 2.25) * d) * d + 1

    def far(d: Tensor) -> Tensor:
        return ((-0.75 * d + 3.75) * d - 6) * d + 3

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


@of("upsample_bicubic2d")
def upsample_bicubic2d(x: Tensor, sizes: Sequence[int], corners: bool, *scales: Any) -> Tensor:
    """Rows, then columns: a weighted sum of four neighbours, the edges repeated."""
    dtype = x.dtype
    x = x.float() if dtype in (taeda.float16, taeda.bfloat16) else x
    for i, (new_size, scale) in enumerate(zip(sizes, scales or (None, None))):
        size = x.shape[2 + i]
        at = taeda.arange(new_size, dtype=x.dtype, device=x.device)
        if corners:
            at = at * ((size - 1.0) / (new_size - 1.0) if new_size > 1 else 0.0)
        else:
            at = (at + 0.5) * (1.0 / scale if scale else size / new_size) - 0.5
        first = at.floor()
        weights = _cubic_weights((at - first).reshape([-1, 1] if i == 0 else [-1]))
        before: list[Any] = [None] * (2 + i)
        neighbours = [(first.to(taeda.int64) + k).clamp(0, size - 1) for k in (-1, 0, 1, 2)]
        index = ops.aten._unsafe_index.Tensor
        terms = [index(x, [*before, n]) * w for n, w in zip(neighbours, weights)]
        x = terms[0] + terms[1] + terms[2] + terms[3]
    return x.to(dtype)


@new(
    "upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, "
    "float[]? scale_factors) -> Tensor"
)
def _bicubic(x: Tensor, size: Any, corners: bool, scales: Any) -> Tensor:
    return upsample_bicubic2d(x, _sizes(x, size, scales), corners, *(scales or []))


@new("affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor")
def affine_grid_generator(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    """Where an affine map takes each pixel, in -1 ... 1."""
    return taeda.nn.functional.affine_grid(theta, list(size), align_corners=align_corners)


# --- pooling ---


def _unpooled(x: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    """Elements at the indices that pooling gave of them, else 0."""
    n = len(output_size)
    lead = x.shape[:-n]
    count = 1
    for size in output_size:
        count *= size
    flat = x.new_zeros((*lead, count)).scatter(-1, indices.flatten(-n), x.flatten(-n))
    return flat.reshape(*lead, *output_size)


@new("max_unpool2d(Tensor self, Tensor indices, SymInt[2] output_size) -> Tensor")
def max_unpool2d(x: Tensor, indices: Tensor, output_size: Sequence[int]) -> Tensor:
    """The inverse of max pooling, zeros where it dropped."""
    return _unpooled(x, indices, output_size)


@new(
    "max_unpool3d(Tensor self, Tensor indices, SymInt[3] output_size, int[3] stride, "
    "int[3] padding) -> Tensor"
)
def max_unpool3d(
    x: Tensor, indices: Tensor, output_size: Sequence[int], stride: Any, padding: Any
) -> Tensor:
    """The inverse of max pooling, zeros where it dropped."""
    return _unpooled(x, indices, output_size)


@of("max_pool2d_with_indices_backward")
def max_pool2d_with_indices_backward(
    g: Tensor, x: Tensor, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
    ceil_mode: bool, indices: Tensor,
) -> Tensor:  # fmt: skip
    """g added where the largest elements were"""
    flat = g.new_zeros((*x.shape[:-2], x.shape[-2] * x.shape[-1]))
    return flat.scatter_add(-1, indices.flatten(-2), g.flatten(-2)).reshape(x.shape)


@of("_adaptive_avg_pool2d")
def _adaptive_avg_pool2d(x: Tensor, output_size: Sequence[int]) -> Tensor:
    """Means of windows that cover each dimension evenly."""
    rows = [x[..., a:b, :].mean(-2, keepdim=True) for a, b in _bins(x.shape[-2], output_size[0])]
    y = taeda.cat(rows, -2)
    columns = [y[..., a:b].mean(-1, keepdim=True) for a, b in _bins(x.shape[-1], output_size[1])]
    return taeda.cat(columns, -1)


def _bins(size: int, count: int) -> list[tuple[int, int]]:
    return [(i * size // count, -(-(i + 1) * size // count)) for i in range(count)]


# --- rows of a table, in bags ---

_BAG = (
    "Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq{}, int mode{}, "
    "bool sparse{}, Tensor? per_sample_weights{}, bool include_last_offset{}"
)
_DEFAULTS = _BAG.format("=False", "=0", "=False", "=None", "=False")
_FOUR = "(Tensor, Tensor, Tensor, Tensor)"


def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False,
    mode: int = 0, sparse: bool = False, per_sample_weights: Any = None,
    include_last_offset: bool = False, padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """torch.embedding_bag, without padding where its index is negative."""
    return taeda.embedding_bag(
        weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, None if padding_idx < 0 else padding_idx,
    )  # fmt: skip


for _name in ("_embedding_bag", "_embedding_bag_forward_only"):
    new(f"{_name}({_DEFAULTS}, int padding_idx=-1) -> {_FOUR}")(_embedding_bag)
new(f"embedding_bag({_DEFAULTS}) -> {_FOUR}")(taeda.embedding_bag)
new(f"embedding_bag.padding_idx({_BAG.format('', '', '', '', '')}, int? padding_idx) -> {_FOUR}")(
    taeda.embedding_bag
)


# --- columns of windows ---


@of("col2im")
def col2im(
    x: Tensor, output_size: Sequence[int], kernel_size: Sequence[int],
    dilation: Sequence[int] = (1, 1), padding: Sequence[int] = (0, 0),
    stride: Sequence[int] = (1, 1),
) -> Tensor:  # fmt: skip
    """Windows, each a column, added up where they were taken: the adjoint of im2col."""
    columns = x if x.dim() == 3 else x.unsqueeze(0)
    n, taps, _ = columns.shape
    channels = taps // (kernel_size[0] * kernel_size[1])
    indices, counts = [], []
    for d in (0, 1):
        extent = output_size[d] + 2 * padding[d]
        counts.append((extent - dilation[d] * (kernel_size[d] - 1) - 1) // stride[d] + 1)
        tap = taeda.arange(kernel_size[d], device=x.device) * dilation[d]
        indices.append(tap.unsqueeze(1) + taeda.arange(counts[d], device=x.device) * stride[d])
    rows, cols = indices[0].reshape(-1, 1, counts[0], 1), indices[1].reshape(-1, 1, counts[1])
    sizes = [output_size[d] + 2 * padding[d] for d in (0, 1)]
    values = columns.reshape(n, channels, *kernel_size, *counts)
    put = ops.aten._unsafe_index_put.default
    image = put(x.new_zeros((n, channels, *sizes)), [None, None, rows, cols], values, True)
    image = image[..., padding[0] :, padding[1] :][..., : output_size[0], : output_size[1]]
    return image if x.dim() == 3 else image.squeeze(0)


@of("unfold_backward")
def unfold_backward(g: Tensor, sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    """Windows along a dimension added up where they were taken."""
    if not len(sizes):
        return g.reshape(())
    dim = dim % len(sizes)
    index = taeda.arange(sizes[dim], device=g.device).unfold(0, size, step).flatten()
    flat = g.movedim(-1, dim + 1).flatten(dim, dim + 1)
    return g.new_zeros(sizes).index_add(dim, index, flat)
