"""Maxima over the bins of regions: torchvision's roi_pool (Fast R-CNN, arXiv:1504.08083)."""

from __future__ import annotations

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

_LOWEST = -3.4028234663852886e38  # float32's; what is not above it is no maximum


def _pixels(start: Tensor, end: Tensor, bins: int, size: int) -> tuple[Tensor, Tensor]:
    """Of one axis the pixels in each bin, [regions, bins, most], and which of them count."""
    length = (rounded(end) - rounded(start) + 1).clamp(min=1)
    first, after = integer_bins(rounded(start), length, bins, size)
    most = int((after - first).max().clamp(min=0))
    at = first.unsqueeze(-1) + torch.arange(most, dtype=first.dtype, device=first.device)
    return at.long().clamp(max=size - 1), at < after.unsqueeze(-1)


def roi_pool(input: Tensor, rois: Tensor, scale: float, *bins: int) -> tuple[Tensor, Tensor]:
    """The largest pixel of each bin and its index in the image; 0 and -1 where it has none."""
    check_rois("roi_pool", input, rois)
    _, channels, height, width = input.shape
    out = input.new_zeros((len(rois), channels, *bins))
    argmax = torch.full(out.shape, -1, dtype=torch.int32, device=input.device)
    cost = channels * (height + 2 * bins[0]) * (width + 2 * bins[1])
    for image, chunk in by_image(rois, max(cost, 1)):
        rows, columns = edges(rois[chunk], scale)
        y, has_y = _pixels(*rows, bins[0], height)
        x, has_x = _pixels(*columns, bins[1], width)
        index = (y[:, :, None, :, None] * width + x[:, None, :, None, :]).flatten(3)
        counts = (has_y[:, :, None, :, None] & has_x[:, None, :, None, :]).flatten(3)
        if not index.numel():
            continue
        pixels = input[image].flatten(1)[:, index]  # [channels, regions, *bins, pixels of a bin]
        found, at = pixels.where(counts & (pixels > _LOWEST), _LOWEST).max(-1)
        at = index.expand_as(pixels).gather(-1, at.unsqueeze(-1)).squeeze(-1)
        out[chunk] = found.where(counts.any(-1), 0).movedim(0, 1)
        argmax[chunk] = at.where(found > _LOWEST, -1).movedim(0, 1).int()
    return out, argmax


def roi_pool_backward(grad: Tensor, rois: Tensor, argmax: Tensor, *rest: Any) -> Tensor:
    """The gradient of roi_pool's input: each bin's goes to its largest pixel."""
    *_, n, c, h, w = rest
    image = rois[:, 0].long()[:, None, None, None]
    channel = torch.arange(c, device=grad.device)[:, None, None]
    index = (image * c + channel) * (h * w) + argmax
    taken = argmax >= 0
    out = grad.new_zeros(n * c * h * w)
    return out.index_add_(0, index[taken], grad[taken]).reshape(n, c, h, w)
