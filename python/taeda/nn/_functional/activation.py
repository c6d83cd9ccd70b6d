"""Activations with PyTorch's `inplace` argument, and those that draw random numbers."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor

from .raw import raw, raw_

__all__ = [
    "threshold",
    "threshold_",
    "relu",
    "relu_",
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
    """``max(0, x)``, element by element; the gradient at 0 is 0.

    Args:
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.relu(torch.tensor([-1., 0., 2.]))
    tensor([0., 0., 2.])
    """
    return relu_(input) if inplace else _relu(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """``x`` where ``x > threshold``, else ``value``.

    Args:
        threshold: the bound, which is itself replaced.
        value: what stands for elements at or below it.
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.threshold(torch.tensor([0.5, 1.5]), 1.0, -1.0)
    tensor([-1.0000,  1.5000])
    """
    return (threshold_ if inplace else _threshold)(input, threshold, value)


def hardtanh(
    input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Tensor:
    """``min(max(x, min_val), max_val)``; the gradient is 0 outside of the bounds.

    Args:
        min_val, max_val: the bounds.
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.hardtanh(torch.tensor([-2., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (hardtanh_ if inplace else _hardtanh)(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x, 0), 6)``, bounded so that low precision has enough digits.

    Args:
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.relu6(torch.tensor([-1., 3., 8.]))
    tensor([0., 3., 6.])
    """
    return (hardtanh_ if inplace else _hardtanh)(input, 0.0, 6.0)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``x`` where ``x > 0``, else ``alpha (exp(x) - 1)`` (Clevert, Unterthiner and Hochreiter
    2016).

    Args:
        alpha: minus the value far below 0.
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.elu(torch.tensor([-1., 1.]))
    tensor([-0.6321,  1.0000])
    """
    return (elu_ if inplace else _elu)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """ELU with the scales that keep mean 0 and variance 1 from layer to layer: ``1.0507 x`` where
    ``x > 0``, else ``1.7581 (exp(x) - 1)`` (Klambauer, Unterthiner, Mayr and Hochreiter 2017).

    Args:
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return selu_(input) if inplace else _selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """``max(0, x) + min(0, alpha (exp(x / alpha) - 1))``: an ELU whose slope is continuous at 0
    for every ``alpha`` (Barron 2017).

    Args:
        alpha: minus the value far below 0.
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.celu(torch.tensor([-1., 1.]), alpha=2.0)
    tensor([-0.7869,  1.0000])
    """
    return (celu_ if inplace else _celu)(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """``x`` where ``x > 0``, else ``negative_slope * x``.

    Args:
        negative_slope: the slope below 0.
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.leaky_relu(torch.tensor([-1., 2.]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return (leaky_relu_ if inplace else _leaky_relu)(input, negative_slope)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * sigmoid(x)``, also called swish.

    Args:
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.silu(torch.tensor([-1., 0., 1.]))
    tensor([-0.2689,  0.0000,  0.7311])
    """
    return _silu_(input) if inplace else _silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * tanh(softplus(x))`` (Misra 2019).

    Args:
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.mish(torch.tensor([-1., 1.]))
    tensor([-0.3034,  0.8651])
    """
    return _mish_(input) if inplace else _mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """``x * min(max(x + 3, 0), 6) / 6``: silu by straight lines (Howard et al. 2019).

    Args:
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.hardswish(torch.tensor([-4., 1., 4.]))
    tensor([-0.0000, 0.6667, 4.0000])
    """
    return _hardswish_(input) if inplace else _hardswish(input)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """``min(max(x / 6 + 1/2, 0), 1)``: the sigmoid by straight lines.

    Args:
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.hardsigmoid(torch.tensor([-4., 0., 1.]))
    tensor([0.0000, 0.5000, 0.6667])
    """
    return _hardsigmoid_(input) if inplace else _hardsigmoid(input)


def sigmoid(input: Tensor) -> Tensor:
    """``1 / (1 + exp(-x))``, from 0 to 1; `binary_cross_entropy_with_logits` needs no sigmoid
    before it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.sigmoid(torch.tensor([0., 2.]))
    tensor([0.5000, 0.8808])
    """
    return input.sigmoid()


def tanh(input: Tensor) -> Tensor:
    """``(exp(x) - exp(-x)) / (exp(x) + exp(-x))``, from -1 to 1.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.tanh(torch.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """
    return input.tanh()


def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Leaky ReLU whose slope is drawn from ``[lower, upper]`` for each element in training, and
    is the mean of the bounds otherwise (Xu, Wang, Chen and Li 2015).

    Args:
        lower, upper: the bounds of the slope below 0.
        training: draw slopes.
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.rrelu(torch.tensor([-1., 2.]), lower=0.1, upper=0.3)
    tensor([-0.2000,  2.0000])
    """
    return raw("rrelu_" if inplace else "rrelu")(input, lower, upper, training)


def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False
) -> Tensor:
    """``rrelu`` in place.

    >>> torch.nn.functional.rrelu_(torch.tensor([-4.0, 1.0]), lower=0.25, upper=0.25)
    tensor([-1.,  1.])
    """
    return rrelu(input, lower, upper, training, inplace=True)


_FORMULAS = {
    "softmax": {"formula": "exp(x_i) / sum_j exp(x_j)", "what": "sums to 1", "result": "0.5000"},
    "softmin": {"formula": "exp(-x_i) / sum_j exp(-x_j)", "what": "sums to 1", "result": "0.5000"},
    "log_softmax": {
        "formula": "x_i - log(sum_j exp(x_j))",
        "what": "is more exact than the logarithm of softmax",
        "result": "-0.6931",
    },
}
_ALONG_DIM = """``{formula}`` along ``dim``, without overflow; {what}.

Args:
    dim: the dimension of the sum; left out, it is guessed from the shape, with a warning.
    dtype: what the input is converted to before, such as float32 for half-precision scores.

Shape: any; the result has the input's. A slice that holds NaN, inf, or only -inf gives NaN.

>>> torch.nn.functional.{name}(torch.tensor([0., 0.]), dim=0)
tensor([{result}, {result}])
"""


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

    along_dim.__doc__ = _ALONG_DIM.format(name=name, **_FORMULAS[name])
    return along_dim


softmax = _along_dim("softmax")
softmin = _along_dim("softmin")
log_softmax = _along_dim("log_softmax")


def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """Samples of the Gumbel-softmax distribution, ``softmax((logits + g) / tau)`` with g drawn
    from the standard Gumbel distribution (Jang, Gu and Poole 2017,
    https://arxiv.org/abs/1611.01144).

    Args:
        logits: logarithms of probabilities, of any scale.
        tau: the temperature; near 0 samples are nearly one-hot.
        hard: give one-hot samples whose gradient is that of the soft ones.
        eps: has no effect.
        dim: the dimension of the classes.

    Shape: any; the result has the logits' and sums to 1 along ``dim``.

    >>> sample = torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True)
    >>> sample.sum(-1)
    tensor([1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    drawn = taeda.empty_like(logits, memory_format=taeda.contiguous_format).exponential_()
    gumbels = -drawn.log()
    soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = taeda.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft
