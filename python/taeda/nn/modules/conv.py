"""Convolutions and transposed convolutions in one to three dimensions, and their lazy forms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module
from .utils import _ntuple, _pair, _reverse_repeat_tuple, _single, _triple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """What all convolutions have in common: the checks, the parameters and the repr."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple,
        stride: tuple,
        padding: tuple | str,
        dilation: tuple,
        transposed: bool,
        output_padding: tuple,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"Invalid padding string {padding!r}, should be one of {{'same', 'valid'}}"
                )
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {set(_PADDING_MODES)}, "
                f"but got padding_mode='{padding_mode}'"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._pad_amounts()
        shape = (
            (in_channels, out_channels // groups)
            if transposed
            else (out_channels, in_channels // groups)
        )
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(taeda.empty((*shape, *kernel_size), **options))
        if bias:
            self.bias = Parameter(taeda.empty(out_channels, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _pad_amounts(self) -> list[int]:
        """The padding in F.pad's order, for the modes that pad before the convolution."""
        if not isinstance(self.padding, str):
            return list(_reverse_repeat_tuple(self.padding, 2))
        amounts: list[int] = []
        for d, k in zip(reversed(self.dilation), reversed(self.kernel_size)):
            total = d * (k - 1) if self.padding == "same" else 0
            amounts += [total // 2, total - total // 2]
        return amounts

    def reset_parameters(self) -> None:
        """Draws new values, uniform in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        n = len(self.kernel_size)
        text = (
            f"{self.in_channels}, {self.out_channels}, "
            f"kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        if "padding_mode" not in self.__dict__:
            self.padding_mode = "zeros"

    def _conv(self, conv: Any, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = (0,) * len(self.kernel_size)
        return conv(input, weight, bias, self.stride, padding, self.dilation, self.groups)


def _conv_init(self: _ConvNd, ntuple: Any, args: tuple) -> None:
    in_channels, out_channels, kernel_size, stride, padding, dilation, *rest = args
    groups, bias, padding_mode, device, dtype = rest
    _ConvNd.__init__(
        self,
        in_channels,
        out_channels,
        ntuple(kernel_size),
        ntuple(stride),
        padding if isinstance(padding, str) else ntuple(padding),
        ntuple(dilation),
        False,
        ntuple(0),
        groups,
        bias,
        padding_mode,
        device,
        dtype,
    )


class Conv1d(_ConvNd):
    """Cross-correlation of sequences with learnt kernels, 1-D.

    Each output channel is a bias plus the sum, over the input channels of its group and the
    window, of input times weight:

        y[n, k, p] = bias[k] + sum_c sum_t weight[k, c, t] * x[n, c, stride * p + dilation * t -
            padding]

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output, one kernel each.
        kernel_size: the window's size.
        stride: the step of the window.
        padding: zeros added at both ends; "same" keeps the size (with stride 1),
            "valid" adds none.
        dilation: the distance of the window's elements.
        groups: input and output channels are cut into so many parts, each of which sees its own
            part only; ``groups == in_channels`` is a depthwise convolution.
        bias: whether a number is added to each output channel.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    Shape:
        input: ``(N, in_channels, L)`` or, of one sample, ``(in_channels, L)``.
        output: ``(N, out_channels, ...)``, each size
            ``(size + 2 padding - dilation (kernel - 1) - 1) // stride + 1``.

    Attributes:
        weight: ``(out_channels, in_channels / groups, kernel sizes)``, at first uniform in
            ``+-1 / sqrt(fan_in)``, fan_in being the elements of one kernel.
        bias: ``(out_channels,)``, at first from the same range; None without one.

    >>> layer = nn.Conv1d(4, 6, kernel_size=3, stride=2, padding=1)
    >>> layer(torch.ones(8, 4, 10)).shape
    torch.Size([8, 6, 5])
    >>> nn.Conv1d(4, 8, 3, padding="same", groups=4).weight.shape
    torch.Size([8, 1, 3])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _conv_init(self, _single, (
            in_channels, out_channels, kernel_size, stride, padding, dilation,
            groups, bias, padding_mode, device, dtype,
        ))  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self._conv(F.conv1d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv2d(_ConvNd):
    """Cross-correlation of images with learnt kernels, 2-D.

    Each output channel is a bias plus the sum, over the input channels of its group and the
    window, of input times weight:

        y[n, k, p] = bias[k] + sum_c sum_t weight[k, c, t] * x[n, c, stride * p + dilation * t -
            padding]

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output, one kernel each.
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window, a number or one for each dimension.
        padding: zeros added at both ends, a number or one for each dimension; "same" keeps the size
            (with stride 1), "valid" adds none.
        dilation: the distance of the window's elements, a number or one for each dimension.
        groups: input and output channels are cut into so many parts, each of which sees its own
            part only; ``groups == in_channels`` is a depthwise convolution.
        bias: whether a number is added to each output channel.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    Shape:
        input: ``(N, in_channels, H, W)`` or, of one sample, ``(in_channels, H, W)``.
        output: ``(N, out_channels, ...)``, each size
            ``(size + 2 padding - dilation (kernel - 1) - 1) // stride + 1``.

    Attributes:
        weight: ``(out_channels, in_channels / groups, kernel sizes)``, at first uniform in
            ``+-1 / sqrt(fan_in)``, fan_in being the elements of one kernel.
        bias: ``(out_channels,)``, at first from the same range; None without one.

    >>> layer = nn.Conv2d(4, 6, kernel_size=3, stride=2, padding=1)
    >>> layer(torch.ones(8, 4, 10, 10)).shape
    torch.Size([8, 6, 5, 5])
    >>> nn.Conv2d(4, 8, 3, padding="same", groups=4).weight.shape
    torch.Size([8, 1, 3, 3])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _conv_init(self, _pair, (
            in_channels, out_channels, kernel_size, stride, padding, dilation,
            groups, bias, padding_mode, device, dtype,
        ))  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self._conv(F.conv2d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv3d(_ConvNd):
    """Cross-correlation of volumes with learnt kernels, 3-D.

    Each output channel is a bias plus the sum, over the input channels of its group and the
    window, of input times weight:

        y[n, k, p] = bias[k] + sum_c sum_t weight[k, c, t] * x[n, c, stride * p + dilation * t -
            padding]

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output, one kernel each.
        kernel_size: the window's size, a number or one for each dimension.
        stride: the step of the window, a number or one for each dimension.
        padding: zeros added at both ends, a number or one for each dimension; "same" keeps the size
            (with stride 1), "valid" adds none.
        dilation: the distance of the window's elements, a number or one for each dimension.
        groups: input and output channels are cut into so many parts, each of which sees its own
            part only; ``groups == in_channels`` is a depthwise convolution.
        bias: whether a number is added to each output channel.
        padding_mode: what is added: "zeros", "reflect", "replicate" or "circular".
        device, dtype: of the parameters.

    Shape:
        input: ``(N, in_channels, D, H, W)`` or, of one sample, ``(in_channels, D, H, W)``.
        output: ``(N, out_channels, ...)``, each size
            ``(size + 2 padding - dilation (kernel - 1) - 1) // stride + 1``.

    Attributes:
        weight: ``(out_channels, in_channels / groups, kernel sizes)``, at first uniform in
            ``+-1 / sqrt(fan_in)``, fan_in being the elements of one kernel.
        bias: ``(out_channels,)``, at first from the same range; None without one.

    >>> layer = nn.Conv3d(4, 6, kernel_size=3, stride=2, padding=1)
    >>> layer(torch.ones(2, 4, 6, 6, 6)).shape
    torch.Size([2, 6, 3, 3, 3])
    >>> nn.Conv3d(4, 8, 3, padding="same", groups=4).weight.shape
    torch.Size([8, 1, 3, 3, 3])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        _conv_init(self, _triple, (
            in_channels, out_channels, kernel_size, stride, padding, dilation,
            groups, bias, padding_mode, device, dtype,
        ))  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        return self._conv(F.conv3d, input, weight, bias)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    _ndim: int
    _function: Any

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        ntuple = _ntuple(self._ndim)
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size),
            ntuple(stride),
            ntuple(padding),
            ntuple(dilation),
            True,
            ntuple(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(self, input: Tensor, output_size: list[int] | None) -> Any:
        """The output padding that gives ``output_size``, or the module's own."""
        if output_size is None:
            return self.output_padding
        n = self._ndim
        has_batch = input.dim() == n + 2
        skip = 2 if has_batch else 1
        output_size = list(output_size)
        if len(output_size) == skip + n:
            output_size = output_size[skip:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} "
                f"or {skip + n} elements (got {len(output_size)})"
            )
        smallest = [
            (input.size(i + skip) - 1) * self.stride[i]
            - 2 * self.padding[i]
            + self.dilation[i] * (self.kernel_size[i] - 1)
            + 1
            for i in range(n)
        ]
        largest = [low + self.stride[i] - 1 for i, low in enumerate(smallest)]
        if any(not low <= s <= high for s, low, high in zip(output_size, smallest, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range "
                f"from {smallest} to {largest} (for an input of {input.size()[2:]})"
            )
        return [s - low for s, low in zip(output_size, smallest)]

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        return self._function(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self._output_padding(input, output_size),
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """The transpose of a convolution, 1-D: the gradient of `Conv1d` by its input, as a layer.

    It spreads each input element over a window, and so enlarges by the stride: the usual way up
    in decoders and generators.

    Args:
        in_channels, out_channels: channels of the input and of the output.
        kernel_size, stride, dilation: those of the convolution that is transposed.
        padding: cut off from both ends of the result.
        output_padding: added at one end, since several sizes map to one under a stride.
        groups: parts of the channels that do not mix.
        bias: whether a number is added to each output channel.
        padding_mode: "zeros" only.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, in_channels, L)`` or ``(in_channels, L)``.
        output: each size ``(size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding +
            1``; ``output_size`` in the call picks the output padding.

    Attributes:
        weight: ``(in_channels, out_channels / groups, kernel sizes)``.
        bias: ``(out_channels,)``.

    >>> layer = nn.ConvTranspose1d(4, 2, kernel_size=4, stride=2, padding=1)
    >>> layer(torch.ones(8, 4, 10)).shape
    torch.Size([8, 2, 20])
    """

    _ndim = 1

    def _function(self, *args: Any) -> Tensor:
        return F.conv_transpose1d(*args)


class ConvTranspose2d(_ConvTransposeNd):
    """The transpose of a convolution, 2-D: the gradient of `Conv2d` by its input, as a layer.

    It spreads each input element over a window, and so enlarges by the stride: the usual way up
    in decoders and generators.

    Args:
        in_channels, out_channels: channels of the input and of the output.
        kernel_size, stride, dilation: those of the convolution that is transposed, a number or one
            for each dimension.
        padding: cut off from both ends of the result, a number or one for each dimension.
        output_padding: added at one end, a number or one for each dimension, since several sizes
            map to one under a stride.
        groups: parts of the channels that do not mix.
        bias: whether a number is added to each output channel.
        padding_mode: "zeros" only.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, in_channels, H, W)`` or ``(in_channels, H, W)``.
        output: each size ``(size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding +
            1``; ``output_size`` in the call picks the output padding.

    Attributes:
        weight: ``(in_channels, out_channels / groups, kernel sizes)``.
        bias: ``(out_channels,)``.

    >>> layer = nn.ConvTranspose2d(4, 2, kernel_size=4, stride=2, padding=1)
    >>> layer(torch.ones(8, 4, 10, 10)).shape
    torch.Size([8, 2, 20, 20])
    """

    _ndim = 2

    def _function(self, *args: Any) -> Tensor:
        return F.conv_transpose2d(*args)


class ConvTranspose3d(_ConvTransposeNd):
    """The transpose of a convolution, 3-D: the gradient of `Conv3d` by its input, as a layer.

    It spreads each input element over a window, and so enlarges by the stride: the usual way up
    in decoders and generators.

    Args:
        in_channels, out_channels: channels of the input and of the output.
        kernel_size, stride, dilation: those of the convolution that is transposed, a number or one
            for each dimension.
        padding: cut off from both ends of the result, a number or one for each dimension.
        output_padding: added at one end, a number or one for each dimension, since several sizes
            map to one under a stride.
        groups: parts of the channels that do not mix.
        bias: whether a number is added to each output channel.
        padding_mode: "zeros" only.
        device, dtype: of the parameters.

    Shape:
        input: ``(N, in_channels, D, H, W)`` or ``(in_channels, D, H, W)``.
        output: each size ``(size - 1) stride - 2 padding + dilation (kernel - 1) + output_padding +
            1``; ``output_size`` in the call picks the output padding.

    Attributes:
        weight: ``(in_channels, out_channels / groups, kernel sizes)``.
        bias: ``(out_channels,)``.

    >>> layer = nn.ConvTranspose3d(4, 2, kernel_size=4, stride=2, padding=1)
    >>> layer(torch.ones(2, 4, 6, 6, 6)).shape
    torch.Size([2, 2, 12, 12, 12])
    """

    _ndim = 3

    def _function(self, *args: Any) -> Tensor:
        return F.conv_transpose3d(*args)


class _LazyConvMixin(LazyModuleMixin):
    """in_channels from the first input."""

    weight: Any
    bias: Any

    def __init__(
        self,
        out_channels: int,
        kernel_size: int | Sequence[int],
        *args: Any,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> None:
        kwargs = {**dict(zip(self._lazy_positional, args)), **kwargs}
        bias = kwargs.pop("bias", bias)
        groups = kwargs.pop("groups", 1)
        super().__init__(0, 0, kernel_size, bias=False, **kwargs)
        self.groups = groups
        self.out_channels = out_channels
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        if not self.has_uninitialized_params():
            return
        n = len(self.kernel_size)
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input "
                f"to {type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        shape = (
            (self.in_channels, self.out_channels // self.groups)
            if self.transposed
            else (self.out_channels, self.in_channels // self.groups)
        )
        with taeda.no_grad():
            self.weight.materialize((*shape, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyConv(_LazyConvMixin):
    _lazy_positional = ("stride", "padding", "dilation", "groups", "bias", "padding_mode")


class _LazyConvTranspose(_LazyConvMixin):
    _lazy_positional = (
        "stride", "padding", "output_padding", "groups", "bias", "dilation", "padding_mode",
    )  # fmt: skip


class LazyConv1d(_LazyConv, Conv1d):
    """A `Conv1d` that learns ``in_channels`` from the first input it sees.

    Args:
        out_channels: channels of the output.
        kernel_size: the window's size.
        args, kwargs: the other arguments of `Conv1d`.
        bias: whether a number is added to each output channel.
        device, dtype: of the parameters.

    Shape:
        As for `Conv1d`; the parameters have no shape before the first call, so call the model
        once before making the optimizer.

    >>> layer = nn.LazyConv1d(6, kernel_size=3)
    >>> layer(torch.ones(8, 4, 10)).shape[:2], layer.in_channels
    (torch.Size([8, 6]), 4)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """A `Conv2d` that learns ``in_channels`` from the first input it sees.

    Args:
        out_channels: channels of the output.
        kernel_size: the window's size, a number or one for each dimension.
        args, kwargs: the other arguments of `Conv2d`.
        bias: whether a number is added to each output channel.
        device, dtype: of the parameters.

    Shape:
        As for `Conv2d`; the parameters have no shape before the first call, so call the model
        once before making the optimizer.

    >>> layer = nn.LazyConv2d(6, kernel_size=3)
    >>> layer(torch.ones(8, 4, 10, 10)).shape[:2], layer.in_channels
    (torch.Size([8, 6]), 4)
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """A `Conv3d` that learns ``in_channels`` from the first input it sees.

    Args:
        out_channels: channels of the output.
        kernel_size: the window's size, a number or one for each dimension.
        args, kwargs: the other arguments of `Conv3d`.
        bias: whether a number is added to each output channel.
        device, dtype: of the parameters.

    Shape:
        As for `Conv3d`; the parameters have no shape before the first call, so call the model
        once before making the optimizer.

    >>> layer = nn.LazyConv3d(6, kernel_size=3)
    >>> layer(torch.ones(2, 4, 6, 6, 6)).shape[:2], layer.in_channels
    (torch.Size([2, 6]), 4)
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A `ConvTranspose1d` that learns ``in_channels`` from the first input it sees.

    Args:
        out_channels: channels of the output.
        kernel_size: the window's size.
        args, kwargs: the other arguments of `ConvTranspose1d`.
        bias: whether a number is added to each output channel.
        device, dtype: of the parameters.

    Shape:
        As for `ConvTranspose1d`; the parameters have no shape before the first call, so call the
            model
        once before making the optimizer.

    >>> layer = nn.LazyConvTranspose1d(6, kernel_size=3)
    >>> layer(torch.ones(8, 4, 10)).shape[:2], layer.in_channels
    (torch.Size([8, 6]), 4)
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A `ConvTranspose2d` that learns ``in_channels`` from the first input it sees.

    Args:
        out_channels: channels of the output.
        kernel_size: the window's size, a number or one for each dimension.
        args, kwargs: the other arguments of `ConvTranspose2d`.
        bias: whether a number is added to each output channel.
        device, dtype: of the parameters.

    Shape:
        As for `ConvTranspose2d`; the parameters have no shape before the first call, so call the
            model
        once before making the optimizer.

    >>> layer = nn.LazyConvTranspose2d(6, kernel_size=3)
    >>> layer(torch.ones(8, 4, 10, 10)).shape[:2], layer.in_channels
    (torch.Size([8, 6]), 4)
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A `ConvTranspose3d` that learns ``in_channels`` from the first input it sees.

    Args:
        out_channels: channels of the output.
        kernel_size: the window's size, a number or one for each dimension.
        args, kwargs: the other arguments of `ConvTranspose3d`.
        bias: whether a number is added to each output channel.
        device, dtype: of the parameters.

    Shape:
        As for `ConvTranspose3d`; the parameters have no shape before the first call, so call the
            model
        once before making the optimizer.

    >>> layer = nn.LazyConvTranspose3d(6, kernel_size=3)
    >>> layer(torch.ones(2, 4, 6, 6, 6)).shape[:2], layer.in_channels
    (torch.Size([2, 6]), 4)
    """

    cls_to_become = ConvTranspose3d
