"""PyTorch's spellings of max pooling and padding."""

from __future__ import annotations

from math import prod
from typing import Any

import taeda
from taeda import Tensor
from taeda.utils._python_dispatch import _disable_current_modes

from .spelling import aten, define, like, ours, spells

# --- max pooling: the table's indices are those within a window, PyTorch's those in the plane ---


def _within_windows(
    indices: Tensor, sizes: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> Tensor:
    """The table's argmax of PyTorch's indices [..., o1, ..., on] into planes of `sizes`."""
    n = len(kernel)
    small = taeda.uint8 if prod(kernel) <= 255 else taeda.int32
    if hasattr(indices, "fake_mode"):  # without values
        return indices.to(small)
    window = taeda.zeros_like(indices)
    rest = indices
    taps = 1
    for d in reversed(range(n)):  # the last dimension varies fastest
        at, rest = rest % sizes[d], rest // sizes[d]
        shape = [1] * (n - d - 1)
        first = taeda.arange(indices.shape[d - n], device=indices.device).view(-1, *shape)
        tap = (at - first * stride[d] + padding[d]) // dilation[d]
        window = window + tap * taps
        taps *= kernel[d]
    return window.to(small)


def _max_pool(n: int) -> None:
    op = getattr(aten, f"max_pool{n}d_with_indices").default

    @spells(f"_max_pool{n}d")
    def _(x: Any, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
          ceil_mode: bool = False, with_argmax: bool = False) -> tuple:  # fmt: skip
        each = lambda v: [v] * n if isinstance(v, int) else [*v]  # noqa: E731
        padding, dilation = each(padding), each(dilation)
        stride = [*stride] or [*kernel]
        sizes = x.shape[-n:]

        def restore(results: Any) -> tuple:
            values, indices = results
            if not with_argmax:
                return values, None
            with _disable_current_modes():
                return values, _within_windows(indices, sizes, kernel, stride, padding, dilation)

        args = (x, kernel, stride, padding, dilation, ceil_mode)
        return op, args, {}, restore


_GRADIENTS = {n: getattr(aten, f"max_pool{n}d_with_indices_backward").default for n in (2, 3)}
for _n in _GRADIENTS:
    _max_pool(_n)


@spells("_max_pool1d")
def _(x: Any, kernel: Any, stride: Any = (), padding: Any = (0,), dilation: Any = (1,),
      ceil_mode: bool = False, with_argmax: bool = False) -> tuple:  # fmt: skip
    """Of a row as an image of one row."""
    if x.dim() == 0:
        args = (x, kernel, stride, padding, dilation, ceil_mode, with_argmax)
        return ours._max_pool1d.default, args, {}, None
    stride = [*stride] or [*kernel]

    def restore(results: Any) -> tuple:
        values, indices = (y.squeeze(-2) for y in results)
        if not with_argmax:
            return values, None
        with _disable_current_modes():
            windows = (kernel, stride, padding, dilation)
            return values, _within_windows(indices, x.shape[-1:], *windows)

    windows = ([1, *kernel], [1, *stride], [0, *padding], [1, *dilation], ceil_mode)
    return aten.max_pool2d_with_indices.default, (x.unsqueeze(-2), *windows), {}, restore


@spells("_max_pool_scatter")
def _(gy: Any, argmax: Any, sizes: Any, kernel: Any, stride: Any, *rest: Any) -> tuple:
    n = len(kernel)
    if n not in _GRADIENTS:
        return ours._max_pool_scatter.default, (gy, argmax, sizes, kernel, stride, *rest), {}, None
    stride = [*stride] or [*kernel]
    with _disable_current_modes():
        indices = ours._max_pool_indices(argmax, sizes, kernel, stride, *rest)
    return _GRADIENTS[n], (gy, like(gy, sizes), kernel, stride, *rest, indices), {}, None


# --- padding ---


def _padding(schema: str, mode: str) -> None:
    define(f"{schema} -> Tensor")(lambda x, padding: ours.pad_by_index(x, padding, mode))


_padding("reflection_pad1d(Tensor self, SymInt[2] padding)", "reflect")
_padding("reflection_pad2d(Tensor self, SymInt[4] padding)", "reflect")
_padding("reflection_pad3d(Tensor self, SymInt[6] padding)", "reflect")
_padding("replication_pad1d(Tensor self, SymInt[2] padding)", "replicate")
_padding("replication_pad2d(Tensor self, SymInt[4] padding)", "replicate")
_padding("replication_pad3d(Tensor self, SymInt[6] padding)", "replicate")
