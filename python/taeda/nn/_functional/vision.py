"""Resizing, lookups and rearrangements."""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda import Tensor
from taeda._arguments import require_bool

from .raw import raw

__all__ = [
    "affine_grid",
    "grid_sample",
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]


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


def _for_each(value: Any, n: int) -> Any:
    """A list for n dimensions, of which a number stands for all; None where that is given."""
    return value if value is None or isinstance(value, (list, tuple)) else [value] * n


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
    n = max(input.dim() - 2, 0)
    return raw("_interpolate")(
        input, _for_each(size, n), _for_each(scale_factor, n), mode, align_corners,
        recompute_scale_factor, antialias,
    )  # fmt: skip


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
