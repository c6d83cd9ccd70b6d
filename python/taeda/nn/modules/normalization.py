"""Normalization within a sample: LayerNorm, GroupNorm, RMSNorm, LocalResponseNorm."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.parameter import Parameter

from .module import Module

__all__ = ["LocalResponseNorm", "CrossMapLRN2d", "LayerNorm", "GroupNorm", "RMSNorm"]


class LocalResponseNorm(Module):
    """Divides each element by a power of the squares of neighbouring channels (AlexNet).

        y_c = x_c / (k + alpha / size * sum over the size channels around c of x^2)^beta

    Args:
        size: the number of channels in the sum, c in the middle.
        alpha, beta, k: the constants of the formula.

    Shape:
        input: ``(N, C, *)``.
        output: the same.

    >>> nn.LocalResponseNorm(2)(torch.ones(1, 3, 1)).flatten()
    tensor([1.0000, 0.9999, 0.9999])
    """

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(Module):
    """Normalization by the squares of the channels up to (size - 1) / 2 on both sides.

        y_c = x_c / (k + alpha / size * sum of x^2 over these channels)^beta

    It keeps to PyTorch, whose sum goes by a running window that leaves things in and out at both
    ends: it keeps the first channel's square throughout, drops the others' one channel later than
    it takes them, and its gradient adds up the ``size`` channels before the window's end.
    `LocalResponseNorm` has neither.

    Args:
        size: the number of channels in the sum.
        alpha, beta, k: the constants of the formula.

    Shape:
        input: ``(N, C, H, W)``; ValueError for others.
        output: the same.

    >>> nn.CrossMapLRN2d(3, alpha=3.0)(torch.ones(1, 1, 1, 1)).flatten()
    tensor([0.5946])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        from ._functions import CrossMapLRN2d

        return CrossMapLRN2d.apply(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


def _shape(normalized_shape: Any) -> tuple[Any, ...]:
    if isinstance(normalized_shape, numbers.Integral):
        return (normalized_shape,)
    return tuple(normalized_shape)


class LayerNorm(Module):
    """Normalizes each sample over its last dimensions. arXiv 1607.06450

        y = (x - mean) / sqrt(var + eps) * weight + bias

    Mean and variance (divided by the count) are those of the normalized dimensions; nothing depends
    on the batch, and training and evaluation are the same.

    Args:
        normalized_shape: the sizes of the dimensions, an int for the last one alone.
        eps: added to the variance.
        elementwise_affine: whether ``weight`` (at first 1) is there, an element a place.
        bias: whether ``bias`` (at first 0) is there, with ``elementwise_affine`` only.
        device, dtype: of the parameters.

    Shape:
        input: ``(*, normalized_shape)``.
        output: the same.

    >>> nn.LayerNorm(3)(torch.tensor([[0., 1., 2.], [0., 10., 20.]]))
    tensor([[-1.2247,  0.0000,  1.2247],
            [-1.2247,  0.0000,  1.2247]], grad_fn=<NativeLayerNormBackward0>)
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            self.weight = Parameter(taeda.empty(self.normalized_shape, **options))
        else:
            self.register_parameter("weight", None)
        if elementwise_affine and bias:
            self.bias = Parameter(taeda.empty(self.normalized_shape, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalizes groups of channels of each sample. arXiv 1803.08494

        y = (x - mean) / sqrt(var + eps) * weight + bias

    Mean and variance are over a group's channels and all their elements; weight and bias belong to
    channels. One group normalizes the whole sample, as many groups as channels each channel.

    Args:
        num_groups: into how many the channels are cut; must divide their number.
        num_channels: C.
        eps: added to the variance.
        affine: whether ``weight`` (at first 1) and ``bias`` (at first 0) are there.
        device, dtype: of the parameters.
        bias: whether ``bias`` is there, with ``affine`` only.

    Shape:
        input: ``(N, C, *)``.
        output: the same.

    >>> nn.GroupNorm(2, 4)(torch.tensor([[0., 2., 10., 30.]]))
    tensor([[-1.0000,  1.0000, -1.0000,  1.0000]],
           grad_fn=<NativeGroupNormBackward0>)
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        options = {"device": device, "dtype": dtype}
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        if affine:
            self.weight = Parameter(taeda.empty(num_channels, **options))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(taeda.empty(num_channels, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides by the root of the mean square over the last dimensions. arXiv 1910.07467

        y = x / sqrt(mean(x^2) + eps) * weight

    Args:
        normalized_shape: the sizes of the dimensions, an int for the last one alone.
        eps: added to the mean square; None: the machine epsilon of the input's dtype.
        elementwise_affine: whether ``weight`` (at first 1) is there.
        device, dtype: of the parameters.

    Shape:
        input: ``(*, normalized_shape)``.
        output: the same.

    >>> nn.RMSNorm(2)(torch.tensor([[3., 4.]]))
    tensor([[0.8485, 1.1314]], grad_fn=<MulBackward0>)
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            weight = taeda.empty(self.normalized_shape, device=device, dtype=dtype)
            self.weight = Parameter(weight)
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )
