"""Means over the bins of regions: torchvision's roi_align, ps_roi_align and ps_roi_pool.

With its samples on a grid a mean is separable: out[p, q] = sum_h sum_w Wy[p, h] Wx[q, w] x[h, w]
where Wy and Wx say how much each row and column of pixels counts in a bin. So the pooling of k
regions is two contractions of their weights with the image, and its gradient the same two
backwards. In the position-sensitive forms each bin reads channels of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import taeda as torch
from taeda import Tensor
from taeda._libraries.torchvision.regions import (
    by_image,
    check_rois,
    edges,
    integer_bins,
    rounded,
)

# regions k, channels c, bins p x q, pixels h x w
_ALL_CHANNELS = ("kph,chw->kpcw", "kqw,kpcw->kcpq")
_OWN_CHANNELS = ("kph,cpqhw->pkcqw", "kqw,pkcqw->kcpq")

#: regions -> their weights of rows [k, p, h] and of columns [k, q, w]
Weights = Callable[[Tensor], Iterable[Tensor]]


def _adjoint(equation: str) -> str:
    """Of a contraction "a,b->c" with b: that of c's gradient with a, which gives b's."""
    weights, image, result = equation.replace("->", ",").split(",")
    return f"{weights},{result}->{image}"


def _sampled(
    start: Tensor, end: Tensor, bins: int, size: int, ratio: int, least: float
) -> tuple[Tensor, Tensor]:
    """Weights of bilinear samples, `ratio` a bin or as many as it has pixels, on one axis, and
    how many they are.

    A sample between two pixels takes from each in proportion to its nearness; more than one pixel
    outside it counts as 0.
    """
    step = (end - start).clamp(min=least) / bins
    count = torch.full_like(step, ratio) if ratio > 0 else step.ceil()
    most = max(int(count.max()), 0) if len(count) else 0
    bin_, sample, pixel = (
        torch.arange(n, dtype=start.dtype, device=start.device) for n in (bins, most, size)
    )
    offset = bin_[:, None] * step[:, None, None] + (sample + 0.5) * (step / count)[:, None, None]
    at = start[:, None, None] + offset
    counts = (at >= -1) & (at <= size) & (sample < count[:, None, None])
    nearness = 1 - (at.clamp(0, size - 1).unsqueeze(-1) - pixel).abs()
    weights = (nearness.clamp(min=0) * counts.unsqueeze(-1)).sum(2)
    return weights / count.clamp(min=1)[:, None, None], count


def _averaged(start: Tensor, end: Tensor, bins: int, size: int, last: int) -> Tensor:
    """Weights of the mean over whole pixels before `last`."""
    length = (rounded(end) - rounded(start)).clamp(min=1)
    first, after = integer_bins(rounded(start), length, bins, last)
    pixel = torch.arange(size, dtype=start.dtype, device=start.device)
    inside = (pixel >= first.unsqueeze(-1)) & (pixel < after.unsqueeze(-1))
    return inside / (after - first).clamp(min=1).unsqueeze(-1)


def _align_weights(
    scale: float, bins: Any, sizes: Any, ratio: int, aligned: bool, empty: float = 0
) -> Weights:
    """Those of samples; `empty` stands for the mean of none."""
    shift, least = (0.5, float("-inf")) if aligned else (0.0, 1.0)

    def weights(rois: Tensor) -> Any:
        for (start, end), n, size in zip(edges(rois, scale), bins, sizes):
            found, count = _sampled(start - shift, end - shift, n, size, ratio, least)
            yield found.masked_fill((count == 0)[:, None, None], empty)

    return weights


def _average_weights(scale: float, bins: Any, sizes: Any, beyond: int) -> Weights:
    """Those of whole pixels, but for the last `beyond` of the image."""

    def weights(rois: Tensor) -> Any:
        for (start, end), n, size in zip(edges(rois, scale), bins, sizes):
            yield _averaged(start, end, n, size, size - beyond)

    return weights


def _cost(channels: int, bins: Any, sizes: Any) -> int:
    """Elements that a region needs between the contractions, and for its weights."""
    return max(channels * bins[0] * sizes[1], 4 * max(sizes) ** 2, 1)


def _pool(input: Tensor, rois: Tensor, weights: Weights, shape: Any, equations: Any) -> Tensor:
    """The means of all bins: [regions, channels, *bins]."""
    bins = shape[1:]
    out = input.new_zeros((len(rois), *shape))
    for image, chunk in by_image(rois, _cost(input.size(1), bins, input.shape[2:])):
        y, x = weights(rois[chunk])
        pixels = input[image]
        if equations is _OWN_CHANNELS:
            pixels = pixels.unflatten(0, tuple(shape))
        out[chunk] = torch.einsum(equations[1], x, torch.einsum(equations[0], y, pixels))
    return out


def _pool_backward(grad: Tensor, rois: Tensor, weights: Weights, shape: Any, equations: Any) -> Any:
    """The gradient of _pool's input, which is of `shape`."""
    bins = grad.shape[2:]
    out = grad.new_zeros(shape)
    for image, chunk in by_image(rois, _cost(shape[1], bins, shape[2:])):
        y, x = weights(rois[chunk])
        columns = torch.einsum(_adjoint(equations[1]), x, grad[chunk])
        out[image] += torch.einsum(_adjoint(equations[0]), y, columns).reshape(shape[1:])
    return out


def roi_align(input: Tensor, rois: Tensor, scale: float, *rest: Any) -> Tensor:
    """Means of bilinear samples in each bin (Mask R-CNN, arXiv:1703.06870)."""
    *bins, ratio, aligned = rest
    check_rois("roi_align", input, rois)
    weights = _align_weights(scale, bins, input.shape[2:], ratio, aligned)
    return _pool(input, rois, weights, (input.size(1), *bins), _ALL_CHANNELS)


def roi_align_backward(grad: Tensor, rois: Tensor, scale: float, *rest: Any) -> Tensor:
    """The gradient of roi_align's input."""
    *bins, n, c, h, w, ratio, aligned = rest
    weights = _align_weights(scale, bins, (h, w), ratio, aligned)
    return _pool_backward(grad, rois, weights, (n, c, h, w), _ALL_CHANNELS)


def _own_channels(name: str, input: Tensor, rois: Tensor, bins: Any) -> tuple[tuple, Tensor]:
    """The shape of a region's result, and which channel of the input each element reads."""
    check_rois(name, input, rois)
    channels, rest = divmod(input.size(1), bins[0] * bins[1])
    if rest:
        raise RuntimeError("input channels must be a multiple of pooling height * pooling width")
    shape = (channels, *bins)
    mapping = torch.arange(input.size(1), dtype=torch.int32, device=input.device).reshape(shape)
    return shape, mapping.repeat(len(rois), 1, 1, 1)


def ps_roi_align(input: Tensor, rois: Tensor, scale: float, *rest: Any) -> tuple[Tensor, Tensor]:
    """roi_align in which each bin has channels of its own (arXiv:1711.07264)."""
    *bins, ratio = rest
    shape, mapping = _own_channels("ps_roi_align", input, rois, bins)
    weights = _align_weights(scale, bins, input.shape[2:], ratio, True, float("nan"))
    return _pool(input, rois, weights, shape, _OWN_CHANNELS), mapping


def ps_roi_align_backward(grad: Tensor, rois: Tensor, mapping: Tensor, *rest: Any) -> Tensor:
    """The gradient of ps_roi_align's input."""
    scale, *bins, ratio, n, c, h, w = rest
    weights = _align_weights(scale, bins, (h, w), ratio, True)
    return _pool_backward(grad, rois, weights, (n, c, h, w), _OWN_CHANNELS)


def ps_roi_pool(input: Tensor, rois: Tensor, scale: float, *bins: Any) -> tuple[Tensor, Tensor]:
    """Means over whole pixels, each bin with channels of its own (R-FCN, arXiv:1605.06409)."""
    shape, mapping = _own_channels("ps_roi_pool", input, rois, bins)
    weights = _average_weights(scale, bins, input.shape[2:], 1)
    return _pool(input, rois, weights, shape, _OWN_CHANNELS), mapping


def ps_roi_pool_backward(grad: Tensor, rois: Tensor, mapping: Tensor, *rest: Any) -> Tensor:
    """The gradient of ps_roi_pool's input; unlike the means it knows the last row and column."""
    scale, *bins, n, c, h, w = rest
    weights = _average_weights(scale, bins, (h, w), 0)
    return _pool_backward(grad, rois, weights, (n, c, h, w), _OWN_CHANNELS)
