"""Sizes and dtypes that definitions of the table ask for: ``rules.NAME(...)``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import taeda


def is_integral(dtype: Any) -> bool:
    """Whether a dtype holds integers; bool does not."""
    return not dtype.is_floating_point and not dtype.is_complex and dtype != taeda.bool


def trailing_dims(count: int) -> list[int]:
    """The last dimensions, counted from the end."""
    return list(range(-count, 0))


def all_but_channel(ndim: int) -> list[int]:
    """All dimensions but the second."""
    return [d for d in range(ndim) if d != 1]


def channel_shape(ndim: int, channels: int) -> list[int]:
    """The sizes by which a number for each channel broadcasts."""
    return [1, channels, *[1] * (ndim - 2)]


def product(values: Sequence[int]) -> int:
    """All values multiplied; 1 of none."""
    return math.prod(values)


def window_size(kernel: Sequence[int], spatial: int) -> int:
    """The elements of a window; one number stands for all its sides."""
    return math.prod(kernel if len(kernel) == spatial else list(kernel) * spatial)


def reduced(sizes: Sequence[int], dims: Sequence[int] | None, keepdim: bool) -> list[int]:
    """The sizes that a reduction leaves; no dimensions mean all."""
    gone = {d % len(sizes) for d in dims} if dims and sizes else set(range(len(sizes)))
    if keepdim:
        return [1 if d in gone else n for d, n in enumerate(sizes)]
    return [n for d, n in enumerate(sizes) if d not in gone]


def sum_dtype(own: Any, given: Any) -> Any:
    """In which dtype a sum is: the one asked for, or int64 of integers and truth values."""
    if given is not None:
        return given
    return taeda.int64 if is_integral(own) or own == taeda.bool else own


def pooled(
    name: str,
    sizes: Sequence[int],
    spatial: int,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
) -> list[int]:
    """How many windows there are along each dimension; those before the last `spatial` stay."""
    out = list(sizes[:-spatial])
    for i, size in enumerate(sizes[-spatial:]):
        k, p, d = (v[min(i, len(v) - 1)] for v in (kernel, padding, dilation))
        step = stride[min(i, len(stride) - 1)] if stride else k
        free = size + 2 * p - d * (k - 1) - 1
        windows = (free + step - 1 if ceil_mode else free) // step + 1
        if ceil_mode and (windows - 1) * step >= size + p:
            windows -= 1  # it begins inside the tensor or the padding before it
        out.append(windows)
    return out
