"""Pooling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taeda import Tensor
from taeda.nn import functional as F

from .module import Module
from .utils import _pair, _single, _triple

__all__ = [
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
]


class _MaxPoolNd(Module):
    __constants__ = [
        "kernel_size",
        "stride",
        "padding",
        "dilation",
        "return_indices",
        "ceil_mode",
    ]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _pool(self, function: Any, input: Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """The largest element of each window, 1-D.

    Args:
        kernel_size: the window's size.
        stride: the step of the window; None: its size, so that windows do not overlap.
        padding: minus infinity added at both ends, at most half of the window.
        dilation: the distance of the window's elements.
        return_indices: whether the call also gives the indices of the maxima in each plane, which
            `MaxUnpool1d` takes.
        ceil_mode: whether sizes are rounded up, so that a last window may reach over the end.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each size ``(size + 2 padding - dilation (kernel - 1) - 1) / stride + 1``, rounded
            down.

    The gradient goes to the first of several equal maxima. NaN counts as largest.

    >>> nn.MaxPool1d(2)(torch.arange(6.).view(1, 1, 6)).flatten()
    tensor([1., 3., 5.])
    """

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """The largest element of each window, 2-D.

    Args:
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window; None: its size, so that windows do not overlap.
        padding: minus infinity added at both ends, at most half of the window.
        dilation: the distance of the window's elements.
        return_indices: whether the call also gives the indices of the maxima in each plane, which
            `MaxUnpool2d` takes.
        ceil_mode: whether sizes are rounded up, so that a last window may reach over the end.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each size ``(size + 2 padding - dilation (kernel - 1) - 1) / stride + 1``, rounded
            down.

    The gradient goes to the first of several equal maxima. NaN counts as largest.

    >>> nn.MaxPool2d(2)(torch.arange(16.).view(1, 1, 4, 4)).flatten()
    tensor([ 5.,  7., 13., 15.])
    """

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """The largest element of each window, 3-D.

    Args:
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window; None: its size, so that windows do not overlap.
        padding: minus infinity added at both ends, at most half of the window.
        dilation: the distance of the window's elements.
        return_indices: whether the call also gives the indices of the maxima in each plane, which
            `MaxUnpool3d` takes.
        ceil_mode: whether sizes are rounded up, so that a last window may reach over the end.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each size ``(size + 2 padding - dilation (kernel - 1) - 1) / stride + 1``, rounded
            down.

    The gradient goes to the first of several equal maxima. NaN counts as largest.

    >>> nn.MaxPool3d(2)(torch.arange(8.).view(1, 1, 2, 2, 2)).flatten()
    tensor([7.])
    """

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.max_pool3d, input)


class _MaxUnpoolNd(Module):
    _ntuple: Any

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
    ) -> None:
        super().__init__()
        ntuple = type(self)._ntuple
        self.kernel_size = ntuple(kernel_size)
        self.stride = ntuple(stride if stride is not None else kernel_size)
        self.padding = ntuple(padding)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Puts values back where `MaxPool1d` found them; zeros elsewhere.

    Args:
        kernel_size, stride, padding: those of the pooling that is undone.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``, with the indices that
            ``MaxPool1d(..., return_indices=True)`` gave.
        output: each size ``(size - 1) stride - 2 padding + kernel``, or ``output_size`` of the
            call, since pooling maps several sizes to one.

    Where an index occurs several times, the last value stays.

    >>> pool, unpool = nn.MaxPool1d(2, return_indices=True), nn.MaxUnpool1d(2)
    >>> unpool(*pool(torch.arange(6.).view(1, 1, 6))).flatten()
    tensor([0., 1., 0., 3., 0., 5.])
    """

    _ntuple = staticmethod(_single)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool1d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool2d(_MaxUnpoolNd):
    """Puts values back where `MaxPool2d` found them; zeros elsewhere.

    Args:
        kernel_size, stride, padding: those of the pooling that is undone, a number or one for each
            dimension.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``, with the indices that
            ``MaxPool2d(..., return_indices=True)`` gave.
        output: each size ``(size - 1) stride - 2 padding + kernel``, or ``output_size`` of the
            call, since pooling maps several sizes to one.

    Where an index occurs several times, the last value stays.

    >>> pool, unpool = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)
    >>> unpool(*pool(torch.arange(16.).view(1, 1, 4, 4))).flatten()
    tensor([ 0.,  0.,  0.,  0.,  0.,  5.,  0.,  7.,  0.,  0.,  0.,  0.,  0., 13.,
             0., 15.])
    """

    _ntuple = staticmethod(_pair)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool2d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class MaxUnpool3d(_MaxUnpoolNd):
    """Puts values back where `MaxPool3d` found them; zeros elsewhere.

    Args:
        kernel_size, stride, padding: those of the pooling that is undone, a number or one for each
            dimension.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``, with the indices that
            ``MaxPool3d(..., return_indices=True)`` gave.
        output: each size ``(size - 1) stride - 2 padding + kernel``, or ``output_size`` of the
            call, since pooling maps several sizes to one.

    Where an index occurs several times, the last value stays.

    >>> pool, unpool = nn.MaxPool3d(2, return_indices=True), nn.MaxUnpool3d(2)
    >>> unpool(*pool(torch.arange(8.).view(1, 1, 2, 2, 2))).flatten()
    tensor([0., 0., 0., 0., 0., 0., 0., 7.])
    """

    _ntuple = staticmethod(_triple)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        return F.max_unpool3d(
            input, indices, self.kernel_size, self.stride, self.padding, output_size
        )


class _AvgPoolNd(Module):
    __constants__ = ["kernel_size", "stride", "padding", "ceil_mode", "count_include_pad"]

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window, 1-D.

    Args:
        kernel_size: the window's size.
        stride: the step of the window; None: its size.
        padding: zeros added at both ends, at most half of the window.
        ceil_mode: whether sizes are rounded up.
        count_include_pad: whether the added zeros count as elements of the mean.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each size ``(size + 2 padding - kernel) / stride + 1``, rounded down.

    >>> nn.AvgPool1d(2)(torch.arange(6.).view(1, 1, 6)).flatten()
    tensor([0.5000, 2.5000, 4.5000])
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _AvgPoolDivisor(_AvgPoolNd):
    __constants__ = [*_AvgPoolNd.__constants__, "divisor_override"]

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, function: Any, input: Tensor) -> Tensor:
        return function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPoolDivisor):
    """The mean of each window, 2-D.

    Args:
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window; None: its size.
        padding: zeros added at both ends, at most half of the window.
        ceil_mode: whether sizes are rounded up.
        count_include_pad: whether the added zeros count as elements of the mean.
        divisor_override: what the sums are divided by instead of the window's elements.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each size ``(size + 2 padding - kernel) / stride + 1``, rounded down.

    >>> nn.AvgPool2d(2)(torch.arange(16.).view(1, 1, 4, 4)).flatten()
    tensor([ 2.5000,  4.5000, 10.5000, 12.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_AvgPoolDivisor):
    """The mean of each window, 3-D.

    Args:
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window; None: its size.
        padding: zeros added at both ends, at most half of the window.
        ceil_mode: whether sizes are rounded up.
        count_include_pad: whether the added zeros count as elements of the mean.
        divisor_override: what the sums are divided by instead of the window's elements.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each size ``(size + 2 padding - kernel) / stride + 1``, rounded down.

    >>> nn.AvgPool3d(2)(torch.arange(8.).view(1, 1, 2, 2, 2)).flatten()
    tensor([3.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool3d, input)


class _FractionalMaxPoolNd(Module):
    __constants__ = ["kernel_size", "return_indices", "output_size", "output_ratio"]
    _ntuple: Any

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        output_size: int | Sequence[int | None] | None = None,
        output_ratio: float | Sequence[float] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        ntuple = type(self)._ntuple
        name = type(self).__name__
        self.kernel_size = ntuple(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = ntuple(output_size) if output_size is not None else None
        self.output_ratio = ntuple(output_ratio) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < r < 1 for r in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def _pool(self, function: Any, input: Tensor) -> Any:
        return function(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Maxima of windows at random places, which reduce by any factor. arXiv 1412.6071

    The windows' steps are a random sequence of the two whole numbers around ``in / out``, drawn
    anew at each call.

    Args:
        kernel_size: the window's size, a number or one for each dimension.
        output_size: the sizes of the output; or
        output_ratio: those sizes as parts of the input's, between 0 and 1.
        return_indices: whether the call also gives the indices of the maxima.
        _random_samples: ``(N, C, 2)`` numbers in [0, 1) in place of random ones.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: ``(N, C, output sizes)``.

    >>> nn.FractionalMaxPool2d(2, output_ratio=0.5)(torch.rand(1, 2, 10, 10)).shape
    torch.Size([1, 2, 5, 5])
    """

    _ntuple = staticmethod(_pair)

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.fractional_max_pool2d, input)


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Maxima of windows at random places, which reduce by any factor. arXiv 1412.6071

    The windows' steps are a random sequence of the two whole numbers around ``in / out``, drawn
    anew at each call.

    Args:
        kernel_size: the window's size, a number or one for each dimension.
        output_size: the sizes of the output; or
        output_ratio: those sizes as parts of the input's, between 0 and 1.
        return_indices: whether the call also gives the indices of the maxima.
        _random_samples: ``(N, C, 3)`` numbers in [0, 1) in place of random ones.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: ``(N, C, output sizes)``.

    >>> nn.FractionalMaxPool3d(2, output_ratio=0.5)(torch.rand(1, 2, 8, 8, 8)).shape
    torch.Size([1, 2, 4, 4, 4])
    """

    _ntuple = staticmethod(_triple)

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.fractional_max_pool3d, input)


class _LPPoolNd(Module):
    __constants__ = ["norm_type", "kernel_size", "stride", "ceil_mode"]

    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}, ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm of each window, 1-D: ``(sum of x^p)^(1/p)``, of the elements as they are.

    ``p = 1`` gives sums, a large p approaches the maximum. The gradient at windows of zeros is 0.

    Args:
        norm_type: p.
        kernel_size: the window's size.
        stride: the step of the window; None: its size.
        ceil_mode: whether sizes are rounded up.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``.
        output: each size ``(size - kernel) / stride + 1``, rounded down.

    >>> nn.LPPool1d(2, 2)(torch.arange(6.).view(1, 1, 6)).flatten()
    tensor([1.0000, 3.6056, 6.4031])
    """

    def forward(self, input: Tensor) -> Tensor:
        norm = float(self.norm_type)
        return F.lp_pool1d(input, norm, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPoolNd):
    """The p-norm of each window, 2-D: ``(sum of x^p)^(1/p)``, of the elements as they are.

    ``p = 1`` gives sums, a large p approaches the maximum. The gradient at windows of zeros is 0.

    Args:
        norm_type: p.
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window; None: its size.
        ceil_mode: whether sizes are rounded up.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``.
        output: each size ``(size - kernel) / stride + 1``, rounded down.

    >>> nn.LPPool2d(2, 2)(torch.arange(16.).view(1, 1, 4, 4)).flatten()
    tensor([ 6.4807,  9.8995, 21.4009, 25.3377])
    """

    def forward(self, input: Tensor) -> Tensor:
        norm = float(self.norm_type)
        return F.lp_pool2d(input, norm, self.kernel_size, self.stride, self.ceil_mode)


class LPPool3d(_LPPoolNd):
    """The p-norm of each window, 3-D: ``(sum of x^p)^(1/p)``, of the elements as they are.

    ``p = 1`` gives sums, a large p approaches the maximum. The gradient at windows of zeros is 0.

    Args:
        norm_type: p.
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window; None: its size.
        ceil_mode: whether sizes are rounded up.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``.
        output: each size ``(size - kernel) / stride + 1``, rounded down.

    >>> nn.LPPool3d(2, 2)(torch.arange(8.).view(1, 1, 2, 2, 2)).flatten()
    tensor([11.8322])
    """

    def forward(self, input: Tensor) -> Tensor:
        norm = float(self.norm_type)
        return F.lp_pool3d(input, norm, self.kernel_size, self.stride, self.ceil_mode)


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["output_size", "return_indices"]

    def __init__(
        self, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima over windows that are chosen so that the output has a given size, 1-D.

    The windows are those of `AdaptiveAvgPool1d`.

    Args:
        output_size: the sizes of the output; None keeps the input's.
        return_indices: whether the call also gives the indices of the maxima.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``, of any size.
        output: ``(N, C, output sizes)``.

    >>> nn.AdaptiveMaxPool1d(1)(torch.arange(6.).view(1, 1, 6)).flatten()
    tensor([5.])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima over windows that are chosen so that the output has a given size, 2-D.

    The windows are those of `AdaptiveAvgPool2d`.

    Args:
        output_size: the sizes of the output, a number or one for each dimension; None keeps the
            input's.
        return_indices: whether the call also gives the indices of the maxima.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``, of any size.
        output: ``(N, C, output sizes)``.

    >>> nn.AdaptiveMaxPool2d(1)(torch.arange(16.).view(1, 1, 4, 4)).flatten()
    tensor([15.])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima over windows that are chosen so that the output has a given size, 3-D.

    The windows are those of `AdaptiveAvgPool3d`.

    Args:
        output_size: the sizes of the output, a number or one for each dimension; None keeps the
            input's.
        return_indices: whether the call also gives the indices of the maxima.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``, of any size.
        output: ``(N, C, output sizes)``.

    >>> nn.AdaptiveMaxPool3d(1)(torch.arange(8.).view(1, 1, 2, 2, 2)).flatten()
    tensor([7.])
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class _AdaptiveAvgPoolNd(Module):
    __constants__ = ["output_size"]

    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means over windows that are chosen so that the output has a given size, 1-D.

    Output element i is the mean of the input elements from ``floor(i in / out)`` to
    ``ceil((i + 1) in / out)``; an output of size 1 is the mean of all.

    Args:
        output_size: the sizes of the output; None keeps the input's.

    Shape:
        input: ``(N, C, L)`` or ``(C, L)``, of any size.
        output: ``(N, C, output sizes)``.

    >>> nn.AdaptiveAvgPool1d(1)(torch.arange(6.).view(1, 1, 6)).flatten()
    tensor([2.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means over windows that are chosen so that the output has a given size, 2-D.

    Output element i is the mean of the input elements from ``floor(i in / out)`` to
    ``ceil((i + 1) in / out)``; an output of size 1 is the mean of all.

    Args:
        output_size: the sizes of the output, a number or one for each dimension; None keeps the
            input's.

    Shape:
        input: ``(N, C, H, W)`` or ``(C, H, W)``, of any size.
        output: ``(N, C, output sizes)``.

    >>> nn.AdaptiveAvgPool2d(1)(torch.arange(16.).view(1, 1, 4, 4)).flatten()
    tensor([7.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means over windows that are chosen so that the output has a given size, 3-D.

    Output element i is the mean of the input elements from ``floor(i in / out)`` to
    ``ceil((i + 1) in / out)``; an output of size 1 is the mean of all.

    Args:
        output_size: the sizes of the output, a number or one for each dimension; None keeps the
            input's.

    Shape:
        input: ``(N, C, D, H, W)`` or ``(C, D, H, W)``, of any size.
        output: ``(N, C, output sizes)``.

    >>> nn.AdaptiveAvgPool3d(1)(torch.arange(8.).view(1, 1, 2, 2, 2)).flatten()
    tensor([3.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self.output_size)
