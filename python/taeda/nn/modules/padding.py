"""Padding layers. Amounts go from the last dimension backwards: (left, right, top, bottom, ...)."""

from __future__ import annotations

from collections.abc import Sequence

from taeda import Tensor
from taeda.nn import functional as F

from .module import Module
from .utils import _ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Pads the last ``_ndim`` dimensions; an int means the same amount on every side."""

    __constants__ = ["padding"]
    _ndim: int
    _mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._ndim)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__ = ["padding", "value"]

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds elements of one value at the ends of the last dimension.

    Args:
        padding: how many at every end, or 2 numbers (left, right); negative ones cut off.
        value: of the new elements.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ConstantPad1d(1, 9.0)(torch.arange(4.).view(1, 1, 4))[0, 0]
    tensor([9., 0., 1., 2., 3., 9.])
    """

    _ndim = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds elements of one value at the ends of the last two dimensions.

    Args:
        padding: how many at every end, or 4 numbers (left, right, top, bottom); negative ones cut
            off.
        value: of the new elements.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ConstantPad2d(1, 9.0)(torch.arange(4.).view(1, 1, 2, 2))[0, 0]
    tensor([[9., 9., 9., 9.],
            [9., 0., 1., 9.],
            [9., 2., 3., 9.],
            [9., 9., 9., 9.]])
    """

    _ndim = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds elements of one value at the ends of the last three dimensions.

    Args:
        padding: how many at every end, or 6 numbers (left, right, top, bottom, front, back);
            negative ones cut off.
        value: of the new elements.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ConstantPad3d(1, 9.0)(torch.arange(8.).view(1, 1, 2, 2, 2))[0, 0, 0]
    tensor([[9., 9., 9., 9.],
            [9., 9., 9., 9.],
            [9., 9., 9., 9.],
            [9., 9., 9., 9.]])
    """

    _ndim = 3


class ZeroPad1d(ConstantPad1d):
    """Adds zeros at the ends of the last dimension.

    Args:
        padding: how many at every end, or 2 numbers (left, right); negative ones cut off.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ZeroPad1d(1)(torch.arange(4.).view(1, 1, 4))[0, 0]
    tensor([0., 0., 1., 2., 3., 0.])
    """

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad2d(ConstantPad2d):
    """Adds zeros at the ends of the last two dimensions.

    Args:
        padding: how many at every end, or 4 numbers (left, right, top, bottom); negative ones cut
            off.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ZeroPad2d(1)(torch.arange(4.).view(1, 1, 2, 2))[0, 0]
    tensor([[0., 0., 0., 0.],
            [0., 0., 1., 0.],
            [0., 2., 3., 0.],
            [0., 0., 0., 0.]])
    """

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ZeroPad3d(ConstantPad3d):
    """Adds zeros at the ends of the last three dimensions.

    Args:
        padding: how many at every end, or 6 numbers (left, right, top, bottom, front, back);
            negative ones cut off.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ZeroPad3d(1)(torch.arange(8.).view(1, 1, 2, 2, 2))[0, 0, 0]
    tensor([[0., 0., 0., 0.],
            [0., 0., 0., 0.],
            [0., 0., 0., 0.],
            [0., 0., 0., 0.]])
    """

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Adds the mirror image at the ends of the last dimension, the edge itself not repeated.

    Args:
        padding: how many at every end, or 2 numbers (left, right); negative ones cut off.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each of the last sizes grows by its two paddings.

    The padding must be less than the size; bool tensors are refused.

    >>> nn.ReflectionPad1d(1)(torch.arange(4.).view(1, 1, 4))[0, 0]
    tensor([1., 0., 1., 2., 3., 2.])
    """

    _ndim = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Adds the mirror image at the ends of the last two dimensions, the edge itself not repeated.

    Args:
        padding: how many at every end, or 4 numbers (left, right, top, bottom); negative ones cut
            off.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each of the last sizes grows by its two paddings.

    The padding must be less than the size; bool tensors are refused.

    >>> nn.ReflectionPad2d(1)(torch.arange(4.).view(1, 1, 2, 2))[0, 0]
    tensor([[3., 2., 3., 2.],
            [1., 0., 1., 0.],
            [3., 2., 3., 2.],
            [1., 0., 1., 0.]])
    """

    _ndim = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Adds the mirror image at the ends of the last three dimensions, the edge itself not repeated.

    Args:
        padding: how many at every end, or 6 numbers (left, right, top, bottom, front, back);
            negative ones cut off.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each of the last sizes grows by its two paddings.

    The padding must be less than the size; bool tensors are refused.

    >>> nn.ReflectionPad3d(1)(torch.arange(8.).view(1, 1, 2, 2, 2))[0, 0, 0]
    tensor([[7., 6., 7., 6.],
            [5., 4., 5., 4.],
            [7., 6., 7., 6.],
            [5., 4., 5., 4.]])
    """

    _ndim = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the edge at the ends of the last dimension.

    Args:
        padding: how many at every end, or 2 numbers (left, right); negative ones cut off.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ReplicationPad1d(1)(torch.arange(4.).view(1, 1, 4))[0, 0]
    tensor([0., 0., 1., 2., 3., 3.])
    """

    _ndim = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the edge at the ends of the last two dimensions.

    Args:
        padding: how many at every end, or 4 numbers (left, right, top, bottom); negative ones cut
            off.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ReplicationPad2d(1)(torch.arange(4.).view(1, 1, 2, 2))[0, 0]
    tensor([[0., 0., 1., 1.],
            [0., 0., 1., 1.],
            [2., 2., 3., 3.],
            [2., 2., 3., 3.]])
    """

    _ndim = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the edge at the ends of the last three dimensions.

    Args:
        padding: how many at every end, or 6 numbers (left, right, top, bottom, front, back);
            negative ones cut off.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each of the last sizes grows by its two paddings.

    >>> nn.ReplicationPad3d(1)(torch.arange(8.).view(1, 1, 2, 2, 2))[0, 0, 0]
    tensor([[0., 0., 1., 1.],
            [0., 0., 1., 1.],
            [2., 2., 3., 3.],
            [2., 2., 3., 3.]])
    """

    _ndim = 3


class _CircularPadNd(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        n = self._ndim
        if input.dim() not in (n + 1, n + 2):
            raise ValueError(f"expected {n + 1}D or {n + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Goes on at the other end: the last dimension is taken for periodic.

    Args:
        padding: how many at every end, or 2 numbers (left, right); negative ones cut off.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each of the last sizes grows by its two paddings.

    The padding must not exceed the size.

    >>> nn.CircularPad1d(1)(torch.arange(4.).view(1, 1, 4))[0, 0]
    tensor([3., 0., 1., 2., 3., 0.])
    """

    _ndim = 1


class CircularPad2d(_CircularPadNd):
    """Goes on at the other end: the last two dimensions are taken for periodic.

    Args:
        padding: how many at every end, or 4 numbers (left, right, top, bottom); negative ones cut
            off.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each of the last sizes grows by its two paddings.

    The padding must not exceed the size.

    >>> nn.CircularPad2d(1)(torch.arange(4.).view(1, 1, 2, 2))[0, 0]
    tensor([[3., 2., 3., 2.],
            [1., 0., 1., 0.],
            [3., 2., 3., 2.],
            [1., 0., 1., 0.]])
    """

    _ndim = 2


class CircularPad3d(_CircularPadNd):
    """Goes on at the other end: the last three dimensions are taken for periodic.

    Args:
        padding: how many at every end, or 6 numbers (left, right, top, bottom, front, back);
            negative ones cut off.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each of the last sizes grows by its two paddings.

    The padding must not exceed the size.

    >>> nn.CircularPad3d(1)(torch.arange(8.).view(1, 1, 2, 2, 2))[0, 0, 0]
    tensor([[7., 6., 7., 6.],
            [5., 4., 5., 4.],
            [7., 6., 7., 6.],
            [5., 4., 5., 4.]])
    """

    _ndim = 3
