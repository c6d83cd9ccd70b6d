"""Resizing, lookups and rearrangements."""

from __future__ import annotations

import math
import warnings
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._arguments import require_bool, require_int, require_tensors

from .raw import fallback, raw

__all__ = [
    "affine_grid",
    "grid_sample",
    "native_channel_shuffle",
    "pdist",
    "channel_shuffle",
    "embedding_bag",
    "interpolate",
    "pixel_shuffle",
    "pixel_unshuffle",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


@fallback
def pdist(input: Tensor, p: float = 2.0) -> Tensor:
    """The p-norm distances of all pairs of rows, those of the first row first."""
    if input.dim() != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input.dim()}D")
    n = input.size(0)
    first, second = taeda.triu_indices(n, n, 1).unbind(0)
    return (input.index_select(0, first) - input.index_select(0, second)).norm(p, 1)


def _centres(count: int, align_corners: bool, like: Tensor) -> Tensor:
    """The coordinates of ``count`` pixels between -1 and 1."""
    if count <= 1:
        return taeda.zeros(count, dtype=like.dtype, device=like.device)
    steps = taeda.linspace(-1, 1, count, dtype=like.dtype, device=like.device)
    return steps if align_corners else steps * ((count - 1) / count)


def _or_default(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False "
            "since 1.3.0. Please specify align_corners=True if the old behavior is desired. See "
            "the documentation of grid_sample for details.",
            stacklevel=3,
        )
    return bool(align_corners)


@fallback
def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The positions that `grid_sample` reads to transform images by ``theta``: ``theta @ (x, y,
    1)`` for each pixel (x, y) of the result, in coordinates from -1 to 1.

    Args:
        theta: a matrix for each image, ``(n, 2, 3)``, or ``(n, 3, 4)`` for volumes.
        size: the result's ``(n, c, h, w)`` or ``(n, c, d, h, w)``.
        align_corners: whether -1 and 1 are the middles of the outermost pixels, or their edges (the
            default); as in `grid_sample`.

    Shape: ``(n, h, w, 2)``, or ``(n, d, h, w, 3)`` for volumes.

    >>> theta = torch.tensor([[[1., 0., 0.], [0., 1., 0.]]])
    >>> torch.nn.functional.affine_grid(theta, (1, 1, 1, 2), align_corners=True)[0, 0]
    tensor([[-1.,  0.],
            [ 1.,  0.]])
    """
    align_corners = _or_default(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = list(size)
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, "
            f"respectively. Got size {size}."
        )
    if theta.dim() != 3 or theta.size(-2) != n or theta.size(-1) != n + 1:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. "
            f"Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    axes = [_centres(count, align_corners, theta) for count in size[2:]]
    points = taeda.meshgrid(*axes, indexing="ij")[::-1]  # x first
    if theta.is_cuda and theta.size(0) == size[0]:  # which has no kernel for products
        columns = [column.reshape(-1, *[1] * n, n) for column in theta.unbind(-1)]
        grid = columns[-1].expand(size[0], *size[2:], n)
        for point, column in zip(points, columns):
            grid = taeda.addcmul(grid, point.unsqueeze(-1), column)
        return grid
    ones = taeda.ones_like(points[0])
    base = taeda.stack([*points, ones], -1).reshape(-1, n + 1)
    return (base @ theta.transpose(1, 2)).view(size[0], *size[2:], n)


@fallback
def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """Reads ``input`` at the positions of ``grid``, between pixels by interpolation (Jaderberg,
    Simonyan, Zisserman and Kavukcuoglu 2015).

    Args:
        input: images ``(n, c, h, w)`` or volumes ``(n, c, d, h, w)``.
        grid: positions from -1 to 1, x first: ``(n, h', w', 2)`` or ``(n, d', h', w', 3)``.
        mode: ``bilinear``, ``nearest`` or, for images, ``bicubic``.
        padding_mode: what lies outside: ``zeros``, ``border`` (the nearest pixel), ``reflection``.
        align_corners: whether -1 and 1 are the middles of the outermost pixels, or their edges (the
            default).

    Shape: ``(n, c, h', w')`` or ``(n, c, d', h', w')``.

    >>> x = torch.tensor([[[[1., 3.]]]])
    >>> middle = torch.zeros(1, 1, 1, 2)
    >>> torch.nn.functional.grid_sample(x, middle, align_corners=True)
    tensor([[[[2.]]]])
    """
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', "
            f"but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or "
            f"'reflection', but got: '{padding_mode}'"
        )
    if align_corners is not None:
        require_bool("grid_sampler", "align_corners", align_corners)
    return raw("grid_sampler")(
        input,
        grid,
        ("bilinear", "nearest", "bicubic").index(mode),
        ("zeros", "border", "reflection").index(padding_mode),
        _or_default(align_corners),
    )


@fallback
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Makes channels into pixels: ``y[c, r i + a, r j + b] = x[c r^2 + r a + b, i, j]`` with r
    the ``upscale_factor`` (Shi et al. 2016).

    Args:
        upscale_factor: r; the number of channels must be a multiple of its square.

    Shape: ``(*, c r^2, h, w)`` to ``(*, c, h r, w r)``.

    >>> torch.nn.functional.pixel_shuffle(torch.arange(4.).view(4, 1, 1), 2)
    tensor([[[0., 1.],
             [2., 3.]]])
    """
    require_tensors("pixel_shuffle", input=input)
    require_int("pixel_shuffle", "upscale_factor", upscale_factor)
    r = upscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {r}")
    c = input.size(-3)
    if c % (r * r) != 0:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={c} is not divisible by {r * r}"
        )
    return raw("_pixel_shuffle")(input, r)


@fallback
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Makes pixels into channels, the inverse of `pixel_shuffle`.

    Args:
        downscale_factor: r; height and width must be multiples of it.

    Shape: ``(*, c, h r, w r)`` to ``(*, c r^2, h, w)``.

    >>> x = torch.tensor([[[0., 1.], [2., 3.]]])
    >>> torch.nn.functional.pixel_unshuffle(x, 2).flatten()
    tensor([0., 1., 2., 3.])
    """
    require_tensors("pixel_unshuffle", input=input)
    require_int("pixel_unshuffle", "downscale_factor", downscale_factor)
    r = downscale_factor
    if input.dim() < 3:
        raise RuntimeError(
            "pixel_unshuffle expects input to have at least 3 dimensions, but got input with "
            f"{input.dim()} dimension(s)"
        )
    if r <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {r}")
    h, w = input.shape[-2:]
    if h % r != 0 or w % r != 0:
        raise RuntimeError(
            "pixel_unshuffle expects height and width to be divisible by downscale_factor, but "
            f"got {h}x{w} and {r}"
        )
    return raw("_pixel_unshuffle")(input, r)


@fallback
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleaves the channels of groups, so that what follows a grouped convolution sees channels
    of all of them (Zhang, Zhou, Lin and Sun 2018): channel ``i`` of group ``g`` becomes channel
    ``i groups + g``.

    Args:
        groups: how many; it divides the number of channels.

    Shape: ``(n, c, *)``; the result has the input's.

    >>> x = torch.arange(4.).view(1, 4, 1)
    >>> torch.nn.functional.channel_shuffle(x, 2).flatten()
    tensor([0., 2., 1., 3.])
    """
    require_tensors("channel_shuffle", input=input)
    require_int("channel_shuffle", "groups", groups)
    if input.dim() < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(input.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    c = input.size(1)
    if c % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups."
        )
    return raw("_channel_shuffle")(input, groups)


native_channel_shuffle = channel_shuffle


def _check_bags(
    input: Tensor,
    weight: Tensor,
    scale_grad_by_freq: bool,
    mode: str,
    sparse: bool,
    per_sample_weights: Tensor | None,
) -> None:
    """Raises for what embedding_bag does not take together."""
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, "
            f"then it must have the same shape as the input ({input.shape})"
        )
    if not weight.dim() == 2:
        raise ValueError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}"
        )


def _bags(
    input: Tensor,
    offsets: Tensor | None,
    per_sample_weights: Tensor | None,
    include_last_offset: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """All indices in a row, where each bag starts, and the weights in a row."""
    if input.dim() == 2:
        if offsets is not None:
            kind = "<unknown>" if not isinstance(offsets, Tensor) else str(type(offsets))
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {kind}"
            )
        length = max(input.size(1), 1)
        starts = taeda.arange(0, input.numel() + 1, length, device=input.device)
        if input.numel() == 0:
            starts = starts.new_zeros(input.size(0) + 1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        return input.reshape(-1), starts, per_sample_weights
    if input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        return input, _bag_starts(offsets, input.numel(), include_last_offset), per_sample_weights
    raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sums, means or maxima of the rows of ``weight`` for each bag of indices.

    Args:
        input: indices, ``(bags, length)`` or ``(n,)`` with
        offsets: where each bag begins.
        weight: ``(num_embeddings, embedding_dim)``.
        max_norm: rows that are read are scaled down to it, in place; by `norm_type`'s norm.
        scale_grad_by_freq: divide a row's gradient by how often it is read.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: whether the gradient of ``weight`` is sparse.
        per_sample_weights: a factor for each index; ``"sum"`` only.
        include_last_offset: ``offsets`` has the end of the last bag, too.
        padding_idx: a row that counts for nothing.

    >>> weight = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    >>> indices, offsets = torch.tensor([0, 2, 1]), torch.tensor([0, 2])
    >>> torch.nn.functional.embedding_bag(indices, weight, offsets, mode="sum")
    tensor([[4., 4.],
            [2., 2.]])
    """
    if weight.dtype == taeda.int64 and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage "
            "`embedding_bag(weight, input, ...)` is deprecated, and should now be "
            "`embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
        weight, input = input, weight
    _check_bags(input, weight, scale_grad_by_freq, mode, sparse, per_sample_weights)
    for name, given in (("indices", input), ("offsets", offsets)):
        if isinstance(given, Tensor) and (given.is_floating_point() or given.is_complex()):
            raise RuntimeError(
                f"embedding_bag(): expected {name} to be of int64 or int32, but got {given.dtype}"
            )
    input, starts, per_sample_weights = _bags(
        input, offsets, per_sample_weights, include_last_offset
    )
    if padding_idx is not None:
        require_int("embedding_bag", "padding_idx", padding_idx)
        if not -weight.size(0) <= padding_idx < weight.size(0):
            raise RuntimeError(
                f"embedding_bag(): padding_idx must be within the number of embeddings, "
                f"-{weight.size(0)} through {weight.size(0) - 1}, but got {padding_idx}"
            )
    by_rows = mode == "max" or scale_grad_by_freq or sparse
    lengths, keep = starts.diff(), None
    if padding_idx is not None:
        padding = padding_idx % weight.size(0)
        keep = input != padding
        kept = taeda.cat([starts.new_zeros(1), keep.cumsum(0)])
        lengths = kept[starts].diff()
        if not _hides_values(input):
            if per_sample_weights is not None:
                per_sample_weights = per_sample_weights[keep]
            input, starts, keep = input[keep], kept[starts], None
        elif not by_rows:  # padding counts as a row of zeros
            weight = weight.index_fill(0, taeda.full((1,), padding, device=weight.device), 0)
    if max_norm is not None or by_rows:  # all checks come before weight is scaled in place
        raw("_bag_sum")(weight.detach()[:, :0], input.to(taeda.int64), starts, per_sample_weights)
    if by_rows:
        return _bags_of_rows(
            input,
            weight,
            (starts, lengths, keep),
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            per_sample_weights,
            sparse,
        )
    if max_norm is not None:
        with taeda.no_grad():
            raw("embedding_renorm_")(weight, input, max_norm, float(norm_type))
    total = raw("_bag_sum")(weight, input.to(taeda.int64), starts, per_sample_weights)
    return total / lengths.clamp(min=1).unsqueeze(1) if mode == "mean" else total


def _hides_values(t: Tensor) -> bool:
    """Whether nobody can look at them: inside vmap, and while a CUDA graph is captured."""
    if _C._batch_level(t):
        return True
    return t.is_cuda and taeda.cuda.is_current_stream_capturing()


def _bags_of_rows(
    input: Tensor,
    weight: Tensor,
    bags: tuple[Tensor, Tensor, Tensor | None],
    max_norm: float | None,
    norm_type: float,
    scale_grad_by_freq: bool,
    mode: str,
    per_sample_weights: Tensor | None,
    sparse: bool,
) -> Tensor:
    """Bags made from the rows of all indices: for maxima, gradients scaled by frequency, and sparse
    ones. `bags`: where they begin, their lengths, and which indices count, all where not given."""
    starts, lengths, keep = bags
    bag_of, count = _bag_numbers(starts, input.numel(), keep), lengths.numel()
    if bag_of is None:
        input = input[: int(starts[-1])]
        bag_of = taeda.arange(count, device=input.device).repeat_interleave(lengths)
    rows = raw("embedding")(
        input, weight, None, max_norm, float(norm_type), scale_grad_by_freq, sparse
    )
    spare = int(_hides_values(bag_of))
    zeros = weight.new_zeros((count + spare, weight.size(1)))
    if mode == "max":
        return _maxima(rows, bag_of, zeros)[:count]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights[: input.numel()].unsqueeze(1)
    total = zeros.index_add(0, bag_of, rows)[:count]
    return total / lengths.clamp(min=1).unsqueeze(1) if mode == "mean" else total


def _bag_numbers(starts: Tensor, total: int, keep: Tensor | None) -> Tensor | None:
    """The bag of each index where nobody can look at them; behind all bags the number of one for
    those that do not count. None elsewhere."""
    if not _hides_values(starts) and keep is None:
        return None
    numbers = taeda.arange(total, device=starts.device)
    bag_of = taeda.searchsorted(starts[1:].contiguous(), numbers, right=True)
    return bag_of if keep is None else bag_of.masked_fill(~keep, starts.numel() - 1)


def _maxima(rows: Tensor, bag_of: Tensor, zeros: Tensor) -> Tensor:
    """Maxima of the rows of each bag, by columns. The first of several has the gradient."""
    index, n = bag_of.unsqueeze(1).expand_as(rows), rows.size(0)
    if n == 0:
        return zeros + rows.sum()  # which gives them a history
    with taeda.no_grad():
        largest = zeros.scatter_reduce(0, index, rows, "amax", include_self=False)[bag_of]
        found = (rows == largest) | ((rows != rows) & (largest != largest))
        numbers = taeda.arange(n, device=rows.device).unsqueeze(1).expand_as(rows)
        none = taeda.full_like(zeros, n, dtype=taeda.int64)
        first = none.scatter_reduce(0, index, numbers.masked_fill(~found, n), "amin")
    return rows.gather(0, first.clamp(max=n - 1)).masked_fill(first == n, 0)


_FIRST_START = (
    "embedding_bag(): offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to "
    "start from position 0. However, got {}"
)


def _bag_starts(offsets: Tensor, total: int, include_last_offset: bool) -> Tensor:
    """Where each bag begins, and where the last one ends."""
    starts = offsets.to(taeda.int64)
    if starts.numel() == 0:
        if include_last_offset:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        return starts.new_zeros(1)
    if _C._batch_level(starts) or (
        starts.is_cuda and _C._check_indices(starts[:1], 1, _FIRST_START)
    ):
        pass  # whose values cannot be looked at: the kernel checks them
    elif int(starts[0]) != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
            f"position 0. However, got {int(starts[0])}"
        )
    elif int(starts[-1]) > total:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length({total}) but got offsets[-1] of "
            f"{int(starts[-1])}"
        )
    return starts if include_last_offset else taeda.cat([starts, starts.new_full((1,), total)])


def _output_size(
    input: Tensor, size: Any, scale_factor: Any, recompute: bool | None
) -> tuple[list[int], list[float] | None]:
    """(output size, scales to compute with)"""
    n = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, (list, tuple)):
            if len(size) != n:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got "
                    f"input with spatial dimensions of {list(input.shape[2:])} and output size of "
                    f"{size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                    "output size in (o1, o2, ...,oK) format."
                )
            return list(size), None
        return [size] * n, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, (list, tuple)):
        if len(scale_factor) != n:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got "
                f"input with spatial dimensions of {list(input.shape[2:])} and scale_factor of "
                f"shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
                "format and scale_factor in (s1, s2, ...,sK) format."
            )
        scales = list(scale_factor)
    else:
        scales = [scale_factor] * n
    sizes = [math.floor(float(input.size(i + 2)) * scales[i]) for i in range(n)]
    return sizes, None if recompute else scales


# mode -> the dimensions, batch and channels included, of the images that it resizes.
_DIMS = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "trilinear": (5,),
    "bicubic": (4,),
}


@fallback
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Resizes images, sequences or volumes to ``size`` or by ``scale_factor``; one of them is
    given.

    Args:
        size: the sizes of the last dimensions, or one number for all.
        scale_factor: what the sizes are multiplied by, rounded down.
        mode: ``nearest`` (the pixel left of the position), ``nearest-exact`` (the closest),
            ``area`` (means), ``linear`` for sequences, ``bilinear`` and ``bicubic`` for images,
            ``trilinear`` for volumes.
        align_corners: whether the first and last pixels lie on those of the input, for the modes
            with ``linear`` and ``cubic`` in their name; else pixels are squares whose edges do.
        recompute_scale_factor: compute positions by the ratio of the sizes, not by the factor.
        antialias: weigh all pixels under a larger one when images shrink (bilinear, bicubic).

    Shape: ``(n, c, w)``, ``(n, c, h, w)`` or ``(n, c, d, h, w)``; the last dimensions change.

    >>> x = torch.tensor([[[1., 3.]]])
    >>> torch.nn.functional.interpolate(x, scale_factor=2)
    tensor([[[1., 1., 3., 3.]]])
    >>> torch.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    tensor([[[1., 2., 3.]]])
    """
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the "
                "interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    if recompute_scale_factor and size is not None:
        raise ValueError(
            "recompute_scale_factor is not meaningful when size is explicitly specified."
        )
    sizes, scales = _output_size(input, size, scale_factor, recompute_scale_factor)
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D "
            "tensor as input"
        )
    if mode == "area" and 3 <= input.dim() <= 5:
        return raw(f"adaptive_avg_pool{input.dim() - 2}d")(input, sizes)
    if input.dim() not in _DIMS.get(mode, ()):
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported"
            f" (got {input.dim()}D) for the modes: nearest | linear | bilinear | bicubic | "
            f"trilinear | area | nearest-exact (got {mode})"
        )
    name = f"upsample_{mode.replace('-', '_')}{input.dim() - 2}d"
    if antialias:
        name = f"_{name}_aa"
    if mode == "nearest-exact":
        name = f"_{name}"
    if "nearest" in mode:
        return raw(name)(input, sizes, *(scales or []))
    return raw(name)(input, sizes, align_corners, *(scales or []))


def upsample(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """The old name of `interpolate`; warns that it is deprecated.

    Args:
        input: ``(n, c, *)``.
        size: the result's sizes behind the channels; or
        scale_factor: by how much they grow.
        mode: ``"nearest"``, ``"linear"``, ``"bilinear"``, ``"bicubic"`` or ``"trilinear"``.
        align_corners: whether the outermost pixels' middles, rather than their edges, meet.

    >>> torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), size=4).shape  # instead
    torch.Size([1, 1, 4, 4])
    """
    warnings.warn(
        "`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with ``mode="nearest"``: each pixel of the result takes its nearest pixel's
    value. Warns that it is deprecated.

    Args:
        input: ``(n, c, *)``.
        size: the result's sizes behind the channels; or
        scale_factor: by how much they grow.

    >>> torch.nn.functional.interpolate(torch.tensor([[[1.0, 2.0]]]), scale_factor=2)  # instead
    tensor([[[1., 1., 2., 2.]]])
    """
    warnings.warn(
        "`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate` with ``mode="bilinear", align_corners=True``: linear between the four nearest
    pixels, the middles of the corners staying where they are. Warns that it is deprecated.

    Args:
        input: ``(n, c, h, w)``.
        size: the result's height and width; or
        scale_factor: by how much they grow.

    >>> x = torch.tensor([[[[0.0, 2.0]]]])
    >>> resize = torch.nn.functional.interpolate  # instead
    >>> resize(x, (1, 3), mode="bilinear", align_corners=True)
    tensor([[[[0., 1., 2.]]]])
    """
    warnings.warn(
        "`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=2,
    )
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)
