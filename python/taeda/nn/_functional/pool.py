"""Pooling functions with PyTorch's `return_indices`, and those made of other operators."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any, cast

import taeda
from taeda import Tensor
from taeda._arguments import require_tensors
from taeda.nn._ntuple import list_with_default as _list_with_default
from taeda.nn._ntuple import ntuple as _ntuple

from .raw import raw

__all__ = [
    *(f"{kind}{n}d" for kind in ("max_pool", "lp_pool") for n in (1, 2, 3)),
    *(f"max_pool{n}d_with_indices" for n in (1, 2, 3)),
    *(f"adaptive_{kind}_pool{n}d" for kind in ("avg", "max") for n in (1, 2, 3)),
    *(f"adaptive_max_pool{n}d_with_indices" for n in (1, 2, 3)),
    "fractional_max_pool2d",
    "fractional_max_pool3d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d_with_indices",
]


if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Literal, Protocol, overload

    class _MaxPool(Protocol):
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: Literal[False] = False,
        ) -> Tensor: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            stride: int | Sequence[int] | None = None,
            padding: int | Sequence[int] = 0,
            dilation: int | Sequence[int] = 1,
            ceil_mode: bool = False,
            return_indices: bool = False,
        ) -> Any: ...

    class _AdaptiveAvgPool(Protocol):
        def __call__(
            self, input: Tensor, output_size: int | Sequence[int | None] | None
        ) -> Tensor: ...

    class _AdaptiveMaxPool(Protocol):
        @overload
        def __call__(
            self,
            input: Tensor,
            output_size: int | Sequence[int | None] | None,
            return_indices: Literal[False] = False,
        ) -> Tensor: ...
        @overload
        def __call__(
            self,
            input: Tensor,
            output_size: int | Sequence[int | None] | None,
            return_indices: bool = False,
        ) -> Any: ...

    class _FractionalMaxPool(Protocol):
        def __call__(
            self,
            input: Tensor,
            kernel_size: int | Sequence[int],
            output_size: int | Sequence[int] | None = None,
            output_ratio: float | Sequence[float] | None = None,
            return_indices: bool = False,
            _random_samples: Tensor | None = None,
        ) -> Any: ...


_SHAPES = {1: "w", 2: "h, w", 3: "d, h, w"}
_MAX_POOL = """The maximum of each window over the last {n} dimension(s).

Args:
    kernel_size: the window's size, a number or one for each dimension.
    stride: the step from window to window; by default the window's size.
    padding: how much -infinity stands at both ends, at most half of the window.
    dilation: the step between a window's elements.
    ceil_mode: let the last window reach past the end, where it begins within.
    return_indices: give also where each maximum was found, as an index into the input's flattened
        last {n} dimension(s): what ``max_unpool{n}d`` takes.

Shape: ``(n, c, {shape})`` or ``(c, {shape})``; each of the last sizes L becomes
``floor((L + 2 padding - dilation (kernel_size - 1) - 1) / stride) + 1``.

>>> x = torch.tensor([1., 4., 2., 3.]).view({view})
>>> torch.nn.functional.max_pool{n}d(x, {window}).flatten()
tensor([4., 3.])
"""
_ADAPTIVE = """The means of windows that divide the last {n} dimension(s) evenly: window o of m over
a size L begins at ``floor(o L / m)`` and ends before ``ceil((o + 1) L / m)``.

Args:
    output_size: the result's last size(s); None keeps the input's.

Shape: ``(n, c, {shape})`` or ``(c, {shape})``; the last {n} size(s) become ``output_size``.

>>> x = torch.arange(8.).view({view})
>>> torch.nn.functional.adaptive_avg_pool{n}d(x, 1).flatten()
tensor([3.5000])
"""


_ADAPTIVE_MAX = """The maxima of windows that divide the last {n} dimension(s) evenly: window o of m
over a size L begins at ``floor(o L / m)`` and ends before ``ceil((o + 1) L / m)``.

Args:
    output_size: the result's last size(s); None keeps the input's.
    return_indices: give also where each maximum was found, as an index into the input's flattened
        last {n} dimension(s).

Shape: ``(n, c, {shape})`` or ``(c, {shape})``; the last {n} size(s) become ``output_size``.

>>> x = torch.arange(8.).view({view})
>>> torch.nn.functional.adaptive_max_pool{n}d(x, 1).flatten()
tensor([7.])
"""
_LP = """``(sum of x^p)^(1/p)`` over each window of the last {n} dimension(s): the sum for p = 1,
near the maximum for large p, the maximum of absolute values for ``inf``.

Args:
    norm_type: p.
    kernel_size: the window's size, a number or one for each dimension.
    stride: the step from window to window; by default the window's size.
    ceil_mode: let the last window reach past the end, where it begins within.

Shape: ``(n, c, {shape})`` or ``(c, {shape})``; each of the last sizes L becomes
``floor((L - kernel_size) / stride) + 1``.

>>> x = torch.tensor([3., 4.]).view({view})
>>> torch.nn.functional.lp_pool{n}d(x, 2, {window}).flatten()
tensor([5.])
"""
_WITH_INDICES = """`{name}` that always gives where each maximum was found, too: as with
``return_indices=True``, a tuple of the maxima and of their indices. It takes the same arguments.

>>> x = torch.arange(4.).view(1, {view})
>>> [t.flatten() for t in torch.nn.functional.{name}_with_indices(x, {window})]
{result}
"""
_FRACTIONAL = """Max pooling with window positions drawn at random [Graham 2014].

Args:
    kernel_size: the size of each window.
    output_size: the result's sizes behind the channels; or
    output_ratio: their shares of the input's, below 1 each.
    return_indices: give where each maximum was found, too.

Shape: ``(n, c, {shape})`` or ``(c, {shape})``.

>>> x = torch.rand({sizes})
>>> torch.nn.functional.fractional_max_pool{n}d(x, 2, output_ratio=(0.5,) * {n}).shape
torch.Size([{half}])
"""
_FRACTIONAL_INDICES = """As ``fractional_max_pool{n}d``, with the positions of the maxima.

>>> x = torch.rand({sizes})
>>> maxima, indices = torch.nn.functional.fractional_max_pool{n}d_with_indices(x, 2, 4)
>>> maxima.shape == indices.shape == torch.Size([{half}])
True
"""


def _max_pool(n: int) -> tuple[_MaxPool, _MaxPool]:
    values_only = raw(f"max_pool{n}d")
    values_and_indices = raw(f"max_pool{n}d_with_indices")

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> tuple[Tensor, Tensor]:
        stride = [] if stride is None else stride
        return values_and_indices(input, kernel_size, stride, padding, dilation, ceil_mode)

    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        stride = [] if stride is None else stride
        function = values_and_indices if return_indices else values_only
        return function(input, kernel_size, stride, padding, dilation, ceil_mode)

    pool.__name__ = f"max_pool{n}d"
    view = ", ".join("1" * n) + ", 4"
    window = "2" if n == 1 else f"({'1, ' * (n - 1)}2)"
    pool.__doc__ = _MAX_POOL.format(n=n, shape=_SHAPES[n], view=view, window=window)
    with_indices.__name__ = f"max_pool{n}d_with_indices"
    with_indices.__doc__ = _WITH_INDICES.format(
        name=f"max_pool{n}d", view=view, window=window, result="[tensor([1., 3.]), tensor([1, 3])]"
    )
    return cast("_MaxPool", pool), cast("_MaxPool", with_indices)


max_pool1d, max_pool1d_with_indices = _max_pool(1)
max_pool2d, max_pool2d_with_indices = _max_pool(2)
max_pool3d, max_pool3d_with_indices = _max_pool(3)


def _full_size(input: Tensor, output_size: Any, n: int) -> Any:
    """`output_size` as n numbers, with the input's where it says None. Whether they are integers is
    looked at later."""
    if isinstance(output_size, int):
        return output_size
    sizes = list(output_size) if isinstance(output_size, (tuple, list)) else [output_size] * n
    if n > 1 or input.dim() > 1:
        sizes = _list_with_default(sizes, list(input.size()))
    if len(sizes) != n and all(isinstance(size, int) for size in sizes):
        raise RuntimeError(
            f"adaptive pooling: output_size must be {n} number(s), got {output_size}"
        )
    return sizes


def _adaptive_avg_pool(n: int) -> _AdaptiveAvgPool:
    function = raw(f"adaptive_avg_pool{n}d")

    def pool(input: Tensor, output_size: Any) -> Tensor:
        return function(input, _full_size(input, output_size, n))

    pool.__name__ = f"adaptive_avg_pool{n}d"
    view = {1: "1, 8", 2: "1, 2, 4", 3: "1, 2, 2, 2"}[n]
    pool.__doc__ = _ADAPTIVE.format(n=n, shape=_SHAPES[n], view=view)
    return pool


adaptive_avg_pool1d = _adaptive_avg_pool(1)
adaptive_avg_pool2d = _adaptive_avg_pool(2)
adaptive_avg_pool3d = _adaptive_avg_pool(3)


def _adaptive_max_pool(n: int) -> tuple[_AdaptiveMaxPool, _AdaptiveMaxPool]:
    function = raw(f"adaptive_max_pool{n}d")

    def with_indices(
        input: Tensor, output_size: Any, return_indices: bool = False
    ) -> tuple[Tensor, Tensor]:
        values, indices = function(input, _full_size(input, output_size, n))
        return values, indices

    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        require_tensors(pool.__name__, input=input)
        values, indices = function(input, _full_size(input, output_size, n))
        return (values, indices) if return_indices else values

    pool.__name__ = f"adaptive_max_pool{n}d"
    view = {1: "1, 8", 2: "1, 2, 4", 3: "1, 2, 2, 2"}[n]
    pool.__doc__ = _ADAPTIVE_MAX.format(n=n, shape=_SHAPES[n], view=view)
    with_indices.__name__ = f"adaptive_max_pool{n}d_with_indices"
    view = ", ".join("1" * n) + ", 4"
    with_indices.__doc__ = _WITH_INDICES.format(
        name=f"adaptive_max_pool{n}d", view=view, window=1, result="[tensor([3.]), tensor([3])]"
    )
    return cast("_AdaptiveMaxPool", pool), cast("_AdaptiveMaxPool", with_indices)


adaptive_max_pool1d, adaptive_max_pool1d_with_indices = _adaptive_max_pool(1)
adaptive_max_pool2d, adaptive_max_pool2d_with_indices = _adaptive_max_pool(2)
adaptive_max_pool3d, adaptive_max_pool3d_with_indices = _adaptive_max_pool(3)


def _lp_pool(
    input: Tensor, norm_type: float, kernel: tuple, stride: Any, ceil_mode: bool
) -> Tensor:
    if abs(norm_type) == inf:
        largest = raw(f"max_pool{len(kernel)}d")
        sign = 1 if norm_type > 0 else -1
        return sign * largest(sign * input.abs(), kernel, stride, ceil_mode=ceil_mode)
    average = raw(f"avg_pool{len(kernel)}d")
    stride = kernel if stride is None else stride
    mean = average(input.pow(norm_type), kernel, stride, 0, ceil_mode)
    # sign(.) * relu(|.|): the root of a negative mean (odd norms) is defined as zero's.
    total = mean.sign() * mean.abs().relu()
    count = 1
    for size in kernel:
        count *= size
    return (total * count).pow(1.0 / norm_type)


def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    return _lp_pool(input, norm_type, _ntuple(1)(kernel_size), stride, ceil_mode)


def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    return _lp_pool(input, norm_type, _ntuple(2)(kernel_size), stride, ceil_mode)


def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Any,
    stride: Any = None,
    ceil_mode: bool = False,
) -> Tensor:
    return _lp_pool(input, norm_type, _ntuple(3)(kernel_size), stride, ceil_mode)


for _n, _f in enumerate((lp_pool1d, lp_pool2d, lp_pool3d), 1):
    _ones = "1, " * (_n - 1)
    _f.__doc__ = _LP.format(
        n=_n, shape=_SHAPES[_n], view=f"1, {_ones}2", window="2" if _n == 1 else f"({_ones}2)"
    )


def _fractional_max_pool(n: int) -> tuple[_FractionalMaxPool, _FractionalMaxPool]:
    name = f"fractional_max_pool{n}d"

    def with_indices(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
        if output_size is None:
            if len(output_ratio) > n:
                raise ValueError(f"{name} requires output_ratio of {n} numbers, got {output_ratio}")
            ratio = _ntuple(n)(output_ratio)
            sizes = [int(s * r) for s, r in zip(input.size()[-n:], ratio)]
        else:
            sizes = output_size
        if _random_samples is None:
            batch = 1 if input.dim() == n + 1 else input.size(0)
            _random_samples = taeda.rand(
                (batch, input.size(-n - 1), n), dtype=input.dtype, device=input.device
            )
        if isinstance(kernel_size, (tuple, list)) and len(kernel_size) != n:
            raise RuntimeError(
                f"{name}: kernel_size must either be a single Int or tuple of Ints, "
                f"got {kernel_size}"
            )
        return raw(name)(input, kernel_size, sizes, _random_samples)

    def pool(
        input: Tensor,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> Any:
        values, indices = with_indices(
            input, kernel_size, output_size, output_ratio, True, _random_samples
        )
        return (values, indices) if return_indices else values

    pool.__name__ = name
    sizes, half = (", ".join(["1", "3", *[side] * n]) for side in "84")
    pool.__doc__ = _FRACTIONAL.format(n=n, shape=_SHAPES[n], sizes=sizes, half=half)
    with_indices.__name__ = name + "_with_indices"
    with_indices.__doc__ = _FRACTIONAL_INDICES.format(n=n, sizes=sizes, half=half)
    return pool, with_indices


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional_max_pool(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional_max_pool(3)
