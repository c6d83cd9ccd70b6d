"""Affine maps."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn import init
from taeda.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module

__all__ = ["Bilinear", "Identity", "LazyLinear", "Linear"]


class Identity(Module):
    """Returns its input unchanged; takes and ignores any arguments when made.

    Useful where a model has a place for a layer and no layer is wanted: a removed head, a
    residual branch without projection.

    Args:
        args, kwargs: ignored.

    Shape:
        input: ``(*)``, any.
        output: the same tensor.

    >>> head = nn.Identity(54, unused=True)
    >>> x = torch.ones(2, 3)
    >>> head(x) is x
    True
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """An affine map of the last dimension: ``y = x @ weight.T + bias``.

    Args:
        in_features: size of the input's last dimension.
        out_features: size of the output's last dimension.
        bias: whether a bias is added.
        device, dtype: of the parameters.

    Shape:
        input: ``(*, in_features)`` with any leading dimensions, none included.
        output: ``(*, out_features)``.

    Attributes:
        weight: ``(out_features, in_features)``, at first uniform in ``+-1 / sqrt(in_features)``.
        bias: ``(out_features,)``, at first from the same range; None without one.

    >>> layer = nn.Linear(4, 2)
    >>> layer(torch.ones(3, 4)).shape
    torch.Size([3, 2])
    >>> [tuple(p.shape) for p in layer.parameters()]
    [(2, 4), (2,)]
    """

    __constants__ = ["in_features", "out_features"]

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        options = {"device": device, "dtype": dtype}
        self.weight = Parameter(taeda.empty((out_features, in_features), **options))
        if bias:
            self.bias = Parameter(taeda.empty(out_features, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        # Past __getattr__, which costs as much as a small product; a parametrized weight is no
        # longer in the table.
        parameters = self._parameters
        if "weight" in parameters and "bias" in parameters:
            return F.linear(input, parameters["weight"], parameters["bias"])
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear under another name, as MultiheadAttention's output projection."""


class Bilinear(Module):
    """A form that is linear in each of two inputs: ``y_k = x1^T A_k x2 + b_k``.

    Args:
        in1_features, in2_features: sizes of the inputs' last dimensions.
        out_features: size of the output's last dimension.
        bias: whether ``b`` is there.
        device, dtype: of the parameters.

    Shape:
        input1: ``(*, in1_features)``; input2: ``(*, in2_features)`` with the same leading sizes.
        output: ``(*, out_features)``.

    Attributes:
        weight: ``(out_features, in1_features, in2_features)``, at first uniform in
            ``+-1 / sqrt(in1_features)``.
        bias: ``(out_features,)``.

    >>> layer = nn.Bilinear(3, 4, 2)
    >>> layer(torch.ones(5, 3), torch.ones(5, 4)).shape
    torch.Size([5, 2])
    """

    __constants__ = ["in1_features", "in2_features", "out_features"]

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        options = {"device": device, "dtype": dtype}
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(taeda.empty(shape, **options))
        if bias:
            self.bias = Parameter(taeda.empty(out_features, **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new values."""
        bound = 1 / math.sqrt(self.weight.size(1))
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class LazyLinear(LazyModuleMixin, Linear):
    """A `Linear` that learns ``in_features`` from the first input it sees.

    Until then its parameters are uninitialized: they have no shape and cannot be optimized, so
    call the model once before making the optimizer.

    Args:
        out_features: size of the output's last dimension.
        bias: whether a bias is added.
        device, dtype: of the parameters.

    Shape:
        input: ``(*, n)``; n becomes ``in_features``.
        output: ``(*, out_features)``.

    >>> layer = nn.LazyLinear(2)
    >>> layer(torch.ones(3, 7)).shape, layer.weight.shape
    (torch.Size([3, 2]), torch.Size([2, 7]))
    """

    cls_to_become = Linear
    weight: UninitializedParameter
    bias: UninitializedParameter

    def __init__(
        self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        # The parent makes no bias here: its size would be wrong.
        super().__init__(0, 0, False)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            with taeda.no_grad():
                self.in_features = input.shape[-1]
                self.weight.materialize((self.out_features, self.in_features))
                if self.bias is not None:
                    self.bias.materialize((self.out_features,))
                self.reset_parameters()
        if self.in_features == 0:
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                    f"in_features from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]
