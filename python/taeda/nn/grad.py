"""Gradients of convolutions, as functions of the gradient of their result.

>>> g = torch.nn.grad.conv1d_weight(torch.ones(1, 1, 3), (1, 1, 2), torch.ones(1, 1, 2))
>>> g
tensor([[[2., 2.]]])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F

__all__ = [
    "conv1d_input",
    "conv1d_weight",
    "conv2d_input",
    "conv2d_weight",
    "conv3d_input",
    "conv3d_weight",
]


def _gradient(function: Callable[[Tensor], Tensor], size: Sequence[int], grad: Tensor) -> Tensor:
    """The gradient of a linear function, which is the same at every argument."""
    at = taeda.zeros(tuple(size), dtype=grad.dtype, device=grad.device, requires_grad=True)
    recorded = taeda.is_grad_enabled()
    with taeda.enable_grad():
        result = function(at)
    return taeda.autograd.grad(result, at, grad, create_graph=recorded)[0]


def _pair(name: str) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    convolution = getattr(F, name)

    def of_input(
        input_size: Sequence[int],
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        def run(x: Tensor) -> Tensor:
            return convolution(x, weight, None, stride, padding, dilation, groups)

        return _gradient(run, input_size, grad_output)

    def of_weight(
        input: Tensor,
        weight_size: Sequence[int],
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        def run(weight: Tensor) -> Tensor:
            return convolution(input, weight, None, stride, padding, dilation, groups)

        return _gradient(run, weight_size, grad_output)

    for function, of in ((of_input, "input"), (of_weight, "weight")):
        function.__name__ = function.__qualname__ = f"{name}_{of}"
        function.__doc__ = f"The gradient of F.{name} with respect to its {of}, of a given size."
    return of_input, of_weight


conv1d_input, conv1d_weight = _pair("conv1d")
conv2d_input, conv2d_weight = _pair("conv2d")
conv3d_input, conv3d_weight = _pair("conv3d")
