"""Operators that taeda has and PyTorch has not, by PyTorch's: parts of gradients and losses."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .activations import elu_backward
from .arithmetic import logit_backward
from .registry import of, wide

_SELU = (1.6732632423543772848170429916717, 1.0507009873554804934193349852946, 1.0)


@of("taeda::pow_backward_self")
@wide
def pow_backward_self(g: Tensor, x: Any, exponent: Any) -> Tensor:
    """g p x^(p - 1), 0 where p is 0"""
    if not isinstance(exponent, Tensor):
        if exponent == 0:
            return taeda.zeros_like(g)
        return g * (exponent * taeda.pow(x, exponent - 1)).conj()
    slope = exponent * taeda.pow(x, exponent - 1)
    return taeda.where(exponent == 0, 0, g * slope.conj())


@of("taeda::pow_backward_exponent")
@wide
def pow_backward_exponent(g: Tensor, x: Any, exponent: Any, y: Tensor) -> Tensor:
    """g y log(x), 0 where x is 0 and p at least 0"""
    if not isinstance(x, Tensor):
        x = taeda.scalar_tensor(x, dtype=y.dtype, device=y.device)
    least = exponent.real if isinstance(exponent, Tensor) and exponent.is_complex() else exponent
    is_flat = taeda.logical_and(x == 0, least >= 0)
    return taeda.where(is_flat, 0, g * (y * taeda.log(x)).conj())


@of("taeda::cross_entropy_of_logits")
@wide
def cross_entropy_of_logits(x: Tensor, target: Tensor) -> Tensor:
    """(1 - t) x - log(sigmoid(x))"""
    return (1 - target) * x - taeda.nn.functional.logsigmoid(x)


@of("taeda::_logit_backward")
def _logit_backward(g: Tensor, x: Tensor) -> Tensor:
    """g / (x (1 - x))"""
    return logit_backward(g, x)


@of("taeda::_move_running_")
def _move_running_(average: Tensor, value: Tensor, momentum: float, scale: float) -> Tensor:
    """The average moves towards a value."""
    return average.mul_(1 - momentum).add_(value, alpha=momentum * scale)


@of("taeda::softshrink_grad0", "taeda::hardshrink_grad0")
def shrink_gradient(g: Tensor, x: Tensor, *, lambd: float = 0.5) -> Tensor:
    """g where |x| > lambd"""
    return taeda.where(taeda.logical_and(x >= -lambd, x <= lambd), 0, g)


@of("taeda::selu_grad0")
def selu_gradient(g: Tensor, x: Tensor) -> Tensor:
    """The slope of `selu` times g."""
    return elu_backward(g, *_SELU, False, x)


@of("taeda::celu_grad0")
def celu_gradient(g: Tensor, x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """The slope of `celu` times g."""
    return elu_backward(g, alpha, 1.0, 1.0 / alpha, False, x)
