"""Deformable convolution: torchvision's deform_conv2d (arXiv:1703.06211, with a mask 1811.11168).

An ordinary convolution reads input[y, x] at a grid; this one at (y + dy, x + dx), between pixels by
bilinear interpolation with zeros outside, times a mask. The values that it reads are gathered into
columns, which a matrix product takes with the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import taeda as torch
from taeda import Tensor

_ELEMENTS = 1 << 24  # of the columns of images that are done at once


class _Convolution:
    """Its numbers: strides, padding, dilation, groups of channels and of offsets."""

    def __init__(self, weight: Tensor, rest: Any):
        *spaces, self.groups, self.offset_groups, self.use_mask = rest
        self.stride, self.padding, self.dilation = spaces[:2], spaces[2:4], spaces[4:]
        self.kernel = tuple(weight.shape[2:])

    def check(self, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor) -> None:
        """RuntimeError where the shapes do not fit together."""
        taps = self.kernel[0] * self.kernel[1]
        sizes = [
            (n + 2 * p - (d * (k - 1) + 1)) // s + 1
            for n, p, d, k, s in zip(
                input.shape[2:], self.padding, self.dilation, self.kernel, self.stride
            )
        ]
        if min(sizes) <= 0:
            raise RuntimeError(
                f"Calculated output size too small - out_h: {sizes[0]} out_w: {sizes[1]}"
            )
        maps = self.offset_groups * taps
        wanted: dict[str, tuple[Any, Any]] = {
            "input.shape[1]": (input.size(1), weight.size(1) * self.groups),
            "offset.shape": (tuple(offset.shape), (len(input), 2 * maps, *sizes)),
        }
        if self.use_mask:
            wanted["mask.shape"] = (tuple(mask.shape), (len(input), maps, *sizes))
        for what, (got, expected) in wanted.items():
            if got != expected:
                raise RuntimeError(
                    f"deform_conv2d: {what} is not valid: got {got} Expected {expected}"
                )

    def coordinates(self, offset: Tensor, axis: int) -> Tensor:
        """Rows (axis 0) or columns (1) that are read: [images, offset groups, taps, h, w]."""
        shape = (len(offset), self.offset_groups, -1, 2, *offset.shape[2:])
        of = lambda n: torch.arange(n, dtype=offset.dtype, device=offset.device)  # noqa: E731
        tap = of(self.kernel[axis]) * self.dilation[axis]
        tap = tap[:, None].expand(self.kernel) if axis == 0 else tap.expand(self.kernel)
        out = of(offset.size(2 + axis)) * self.stride[axis] - self.padding[axis]
        out = out[:, None] if axis == 0 else out
        return offset.reshape(shape)[:, :, :, axis] + (tap.reshape(-1, 1, 1) + out)

    def corners(self, offset: Tensor, height: int, width: int) -> Iterator[_Corner]:
        """The four pixels around what each tap reads."""
        y, x = self.coordinates(offset, 0), self.coordinates(offset, 1)
        for row, *near_y in _neighbours(y, height):
            for column, *near_x in _neighbours(x, width):
                yield _Corner((row * width + column).flatten(2).unsqueeze(2), near_y, near_x)

    def by_offset_group(self, x: Tensor) -> Tensor:
        """[images, offset groups, channels, rest] of [images, channels, ...]."""
        return x.reshape(len(x), self.offset_groups, x.size(1) // self.offset_groups, -1)

    def columns(self, input: Tensor, offset: Tensor, mask: Tensor) -> Tensor:
        """What is read: [images, groups, channels times taps, pixels]."""
        pixels = self.by_offset_group(input)
        found: Any = 0
        for corner in self.corners(offset, *input.shape[2:]):
            found = found + corner.read(pixels) * corner.nearness().flatten(2).unsqueeze(2)
        if self.use_mask:
            found = found * mask.reshape(len(mask), self.offset_groups, 1, -1)
        return found.reshape(len(input), self.groups, -1, offset.size(2) * offset.size(3))

    def run(self, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor) -> Any:
        """The convolution of some images."""
        out = self.by_group(weight) @ self.columns(input, offset, mask)
        return out.reshape(len(input), len(weight), *offset.shape[2:]) + bias[:, None, None]

    def by_group(self, weight: Tensor) -> Tensor:
        return weight.reshape(self.groups, len(weight) // self.groups, -1)

    def gradients(
        self, grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor
    ) -> tuple[Tensor, ...]:
        """Those of some images, and what they add to the weights' and the bias's."""
        rows = grad.reshape(len(grad), self.groups, len(weight) // self.groups, -1)
        to_weight = (rows @ self.columns(input, offset, mask).mT).sum(0).reshape(weight.shape)
        read = (self.by_group(weight).mT @ rows).reshape(len(input), input.size(1), -1)
        read = self.by_offset_group(read)  # the gradient of what is read
        pixels = self.by_offset_group(input)
        to_pixels, shape = torch.zeros_like(pixels), self.coordinates(offset, 0).shape
        scale: Any = mask.reshape(shape) if self.use_mask else 1
        to_mask: Any = 0
        to_y: Any = 0
        to_x: Any = 0
        for corner in self.corners(offset, *input.shape[2:]):
            share = (read * corner.read(pixels)).sum(2).reshape(shape)
            to_mask = to_mask + share * corner.nearness()
            to_y = to_y + share * corner.y[1] * corner.x[0]
            to_x = to_x + share * corner.y[0] * corner.x[1]
            weighted = read * (scale * corner.nearness()).flatten(2).unsqueeze(2)
            to_pixels.scatter_add_(3, corner.index.expand_as(weighted), weighted)
        to_offset = torch.stack([to_y * scale, to_x * scale], 3).reshape(offset.shape)
        to_mask = to_mask.reshape(mask.shape) if self.use_mask else torch.zeros_like(mask)
        return to_pixels.reshape(input.shape), to_weight, to_offset, to_mask, grad.sum((0, 2, 3))

    def chunks(self, input: Tensor, offset: Tensor) -> Iterator[slice]:
        """Images that are done at once."""
        taps = self.kernel[0] * self.kernel[1]
        each = input.size(1) * taps * offset.size(2) * offset.size(3)
        step = max(1, _ELEMENTS // max(each, 1))
        return (slice(at, at + step) for at in range(0, len(input), step))


class _Corner:
    """One pixel for each tap: its index, and vertically and horizontally how much it counts and
    how that changes with the coordinate."""

    def __init__(self, index: Tensor, y: Any, x: Any):
        self.index, self.y, self.x = index, y, x

    def nearness(self) -> Tensor:
        return self.y[0] * self.x[0]

    def read(self, pixels: Tensor) -> Tensor:
        return pixels.gather(3, self.index.expand(-1, -1, pixels.size(2), -1))


def _neighbours(at: Tensor, size: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """The pixels before and after a coordinate, each with its nearness, which is 0 outside, and
    the derivative of that."""
    floor = at.floor()
    for pixel, nearness, slope in ((floor, floor + 1 - at, -1), (floor + 1, at - floor, 1)):
        inside = (pixel >= 0) & (pixel < size)
        yield pixel.clamp(0, size - 1).long(), nearness * inside, inside * slope


def deform_conv2d(
    input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor, *rest: Any
) -> Tensor:
    """The convolution of all images."""
    convolution = _Convolution(weight, rest)
    convolution.check(input, weight, offset, mask)
    parts = [
        convolution.run(input[part], weight, offset[part], mask[part], bias)
        for part in convolution.chunks(input, offset)
    ]
    empty = (0, len(weight), *offset.shape[2:])
    return torch.cat(parts) if parts else input.new_empty(empty)


def deform_conv2d_backward(
    grad: Tensor, input: Tensor, weight: Tensor, offset: Tensor, mask: Tensor, bias: Tensor,
    *rest: Any,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of the five tensors."""
    convolution = _Convolution(weight, rest)
    found = tuple(torch.zeros_like(tensor) for tensor in (input, weight, offset, mask, bias))
    for part in convolution.chunks(input, offset):
        own = convolution.gradients(grad[part], input[part], weight, offset[part], mask[part])
        for total, gradient, of_images in zip(found, own, (True, False, True, True, False)):
            (total[part] if of_images else total).add_(gradient)
    return found
