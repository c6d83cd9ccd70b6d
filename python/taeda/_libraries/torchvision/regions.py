"""What operators on regions of images (rois: [image, x1, y1, x2, y2] in each row) share."""

from __future__ import annotations

from collections.abc import Iterator

import taeda as torch
from taeda import Tensor

_ELEMENTS = 1 << 22  # of the largest intermediate result


def check_rois(name: str, input: Tensor, rois: Tensor) -> None:
    """RuntimeError unless the regions belong to images of these."""
    if input.dim() != 4:
        raise RuntimeError(f"{name}: expected input of 4 dimensions, got {input.dim()}")
    if rois.dim() != 2 or rois.size(1) != 5:
        raise RuntimeError(f"{name}: rois must have shape as Tensor[K, 5], got {list(rois.shape)}")
    if input.dtype != rois.dtype:
        raise RuntimeError(
            "Expected tensor for input to have the same type as tensor for rois; but type "
            f"{input.dtype} does not equal {rois.dtype} (while checking arguments for {name})"
        )
    if rois.size(0) and not 0 <= int(rois[:, 0].min()) <= int(rois[:, 0].max()) < input.size(0):
        raise IndexError(f"{name}: rois name images that are not among {input.size(0)}")


def by_image(rois: Tensor, elements: int) -> Iterator[tuple[int, Tensor]]:
    """Image after image, the indices of its regions, in chunks of `elements` a region."""
    images = rois[:, 0].long()
    for image in images.unique().tolist():
        for chunk in (images == image).nonzero().flatten().split(max(1, _ELEMENTS // elements)):
            yield image, chunk


def edges(rois: Tensor, scale: float) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """First and last coordinates on the feature map, vertically and horizontally."""
    _, x1, y1, x2, y2 = (rois * scale).unbind(1)
    return (y1, y2), (x1, x2)


def rounded(x: Tensor) -> Tensor:
    """The nearest integer, of two the one that is farther from 0."""
    return torch.where(x < 0, (x - 0.5).ceil(), (x + 0.5).floor())


def integer_bins(start: Tensor, length: Tensor, bins: int, last: int) -> tuple[Tensor, Tensor]:
    """First pixel and the one after the last of each of a region's bins, within [0, last]."""
    step = (length / bins)[:, None]
    bin_ = torch.arange(bins, dtype=length.dtype, device=length.device)
    ends = (bin_ * step).floor(), ((bin_ + 1) * step).ceil()
    first, after = ((end + start[:, None]).clamp(0, last) for end in ends)
    return first, after
