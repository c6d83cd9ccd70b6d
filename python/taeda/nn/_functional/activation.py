"""Activations with PyTorch's `inplace` argument, and those that draw random numbers."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor

from .raw import fallback, has, raw, raw_

__all__ = [
    "threshold",
    "threshold_",
    "relu",
    "relu_",
    "glu",
    "hardtanh",
    "hardtanh_",
    "relu6",
    "elu",
    "elu_",
    "selu",
    "selu_",
    "celu",
    "celu_",
    "leaky_relu",
    "leaky_relu_",
    "rrelu",
    "rrelu_",
    "hardsigmoid",
    "hardswish",
    "silu",
    "mish",
    "sigmoid",
    "tanh",
    "gumbel_softmax",
    "log_softmax",
    "softmax",
    "softmin",
]

_relu, relu_ = raw("relu"), raw_("relu")
_selu, selu_ = raw("selu"), raw_("selu")
_silu, _silu_ = raw("silu"), raw_("silu")
_mish, _mish_ = raw("mish"), raw_("mish")
_hardswish, _hardswish_ = raw("hardswish"), raw_("hardswish")
_hardsigmoid, _hardsigmoid_ = raw("hardsigmoid"), raw_("hardsigmoid")
_threshold, threshold_ = raw("threshold"), raw_("threshold")
_hardtanh, hardtanh_ = raw("hardtanh"), raw_("hardtanh")
_elu, elu_ = raw("elu"), raw_("elu")
_celu, celu_ = raw("celu"), raw_("celu")
_leaky_relu, leaky_relu_ = raw("leaky_relu"), raw_("leaky_relu")


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """``max(0, x)``."""
    return relu_(input) if inplace else _relu(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where ``x > threshold``, else ``value``."""
    return (threshold_ if inplace else _threshold)(input, threshold, value)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``min(max(x, min_val), max_val)``."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (hardtanh_ if inplace else _hardtanh)(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``."""
    return (hardtanh_ if inplace else _hardtanh)(input, 0.0, 6.0)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where ``x > 0``, else ``alpha (exp(x) - 1)``."""
    return (elu_ if inplace else _elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """ELU with the scales that keep mean 0 and variance 1."""
    return selu_(input) if inplace else _selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``."""
    return (celu_ if inplace else _celu)(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where ``x > 0``, else ``negative_slope * x``."""
    return (leaky_relu_ if inplace else _leaky_relu)(input, negative_slope)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``."""
    return _silu_(input) if inplace else _silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))``."""
    return _mish_(input) if inplace else _mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * min(max(x + 3, 0), 6) / 6``."""
    return _hardswish_(input) if inplace else _hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x / 6 + 1/2, 0), 1)``."""
    return _hardsigmoid_(input) if inplace else _hardsigmoid(input)


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``."""
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """``tanh(x)``."""
    return input.tanh()


@fallback
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """``a * sigmoid(b)``, with a and b the halves of the input along ``dim``."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if input.size(dim) % 2 != 0:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {input.size(dim)}"
        )
    a, b = input.chunk(2, dim)
    return a * b.sigmoid()


def _rrelu_slopes(input: Tensor, lower: float, upper: float) -> Tensor:
    """One random slope for each element that is not positive, 1 for the others.

    Numbers are drawn in double precision and only where they are needed, as in PyTorch.
    """
    below = input.detach() <= 0
    drawn = taeda.empty(int(below.sum()), dtype=taeda.float64, device=input.device)
    slopes = taeda.ones_like(input)
    slopes[below] = drawn.uniform_(lower, upper).to(input.dtype)
    return slopes


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU whose slope is drawn from ``[lower, upper]`` in training, its mean otherwise."""
    if has("rrelu"):
        return (raw_("rrelu") if inplace else raw("rrelu"))(input, lower, upper, training)
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = _rrelu_slopes(input, lower, upper)
    return input.mul_(slopes) if inplace else input * slopes


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """``rrelu`` in place."""
    return rrelu(input, lower, upper, training, inplace=True)


def _along_dim(name: str) -> Callable[..., Tensor]:
    """The table's function, with a warning where the dimension is not given."""
    function = raw(name)

    @functools.wraps(function)
    def along_dim(
        input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None
    ) -> Tensor:
        if dim is None:
            warnings.warn(
                f"Implicit dimension choice for {name} has been deprecated. "
                "Change the call to include dim=X as an argument.",
                stacklevel=max(_stacklevel - 1, 2),
            )
            dim = 0 if input.dim() in (0, 1, 3) else 1
        return function(input, dim, dtype=dtype)

    return along_dim


softmax = _along_dim("softmax")
softmin = _along_dim("softmin")
log_softmax = _along_dim("log_softmax")


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Samples from the Gumbel-softmax distribution; ``hard`` gives one-hot samples whose gradient
    is the soft one's. https://arxiv.org/abs/1611.01144
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -taeda.empty_like(logits).exponential_().log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = taeda.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
