"""Activations and their gradients. `g` is the gradient of the result."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor

from .registry import new, of, wide

_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@of("silu")
@wide
def silu(x: Tensor) -> Tensor:
    """x sigmoid(x)"""
    return x * taeda.sigmoid(x)


@of("silu_backward")
@wide
def silu_backward(g: Tensor, x: Tensor) -> Tensor:
    """g s (1 + x (1 - s)), s = sigmoid(x)"""
    s = taeda.sigmoid(x)
    return g * s * (1 + x * (1 - s))


@of("gelu")
@wide
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """x Phi(x), or with a tanh in place of Phi."""
    if approximate == "tanh":
        return 0.5 * x * (1 + taeda.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + taeda.erf(x * math.sqrt(0.5)))


@of("gelu_backward")
@wide
def gelu_backward(g: Tensor, x: Tensor, *, approximate: str = "none") -> Tensor:
    """g (Phi(x) + x Phi'(x))"""
    if approximate == "tanh":
        c = math.sqrt(2 / math.pi)
        t = taeda.tanh(c * (x + 0.044715 * x * x * x))
        slope = (1 - t * t) * c * (1 + 3 * 0.044715 * x * x)
        return g * (0.5 * (1 + t) + 0.5 * x * slope)
    density = taeda.exp(x * x * -0.5) / math.sqrt(2 * math.pi)
    return g * (0.5 * (1 + taeda.erf(x * math.sqrt(0.5))) + x * density)


@of("hardsigmoid")
@wide
def hardsigmoid(x: Tensor) -> Tensor:
    """clamp(x + 3, 0, 6) / 6"""
    return taeda.clamp(x + 3, 0, 6) / 6


@of("hardsigmoid_backward")
def hardsigmoid_backward(g: Tensor, x: Tensor) -> Tensor:
    """g / 6 where -3 < x < 3"""
    return taeda.where((x > -3) & (x < 3), g * (1 / 6), 0)


@of("hardswish")
@wide
def hardswish(x: Tensor) -> Tensor:
    """x clamp(x + 3, 0, 6) / 6"""
    return x * taeda.clamp(x + 3, 0, 6) / 6


@of("hardswish_backward")
@wide
def hardswish_backward(g: Tensor, x: Tensor) -> Tensor:
    """0 below -3, g above 3, g (x / 3 + 1 / 2) between"""
    inner = taeda.where(x < 3, g * (x / 3 + 0.5), g)
    return taeda.where(x <= -3, 0, inner)


@of("hardtanh")
def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """clamp(x, min_val, max_val)"""
    return taeda.clamp(x, min_val, max_val)


@of("hardtanh_backward")
def hardtanh_backward(g: Tensor, x: Tensor, min_val: float, max_val: float) -> Tensor:
    """g where min_val < x < max_val"""
    return taeda.where((x <= min_val) | (x >= max_val), 0, g)


@of("leaky_relu")
def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, else negative_slope x"""
    return taeda.where(x > 0, x, x * negative_slope)


@of("leaky_relu_backward")
def leaky_relu_backward(g: Tensor, x: Tensor, negative_slope: float, is_result: bool) -> Tensor:
    """g where x > 0, else negative_slope g"""
    return taeda.where(x > 0, g, g * negative_slope)


@of("elu")
@wide
def elu(x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """scale x where x > 0, else scale alpha (exp(input_scale x) - 1)"""
    return taeda.where(x > 0, x * scale, taeda.expm1(x * input_scale) * (alpha * scale))


@of("elu_backward")
@wide
def elu_backward(
    g: Tensor, alpha: float, scale: float, input_scale: float, is_result: bool, x: Tensor
) -> Tensor:
    """The slope of `elu` at `x`, or where its result is `x`, times g."""
    if is_result:
        below = g * input_scale * (x + alpha * scale)
    else:
        below = g * (input_scale * alpha * scale) * taeda.exp(x * input_scale)
    return taeda.where(x <= 0, below, g * scale)


@of("selu")
def selu(x: Tensor) -> Tensor:
    """elu with the constants that keep mean 0 and variance 1"""
    return elu(x, _SELU_ALPHA, _SELU_SCALE)


@of("celu")
def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x where x > 0, else alpha (exp(x / alpha) - 1)"""
    return elu(x, alpha, 1.0, 1.0 / alpha)


@of("softplus")
@wide
def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x where beta x > threshold"""
    scaled = x * beta
    return taeda.where(scaled > threshold, x, taeda.log1p(taeda.exp(scaled)) / beta)


@of("softplus_backward")
@wide
def softplus_backward(g: Tensor, x: Tensor, beta: float, threshold: float) -> Tensor:
    """g sigmoid(beta x), g where beta x > threshold"""
    z = taeda.exp(x * beta)
    return taeda.where(x * beta > threshold, g, g * z / (z + 1))


@of("mish")
@wide
def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x))"""
    return x * taeda.tanh(softplus(x))


@of("mish_backward")
@wide
def mish_backward(g: Tensor, x: Tensor) -> Tensor:
    """g (t + x s (1 - t^2)), t = tanh(softplus(x)), s = sigmoid(x)"""
    t = taeda.tanh(softplus(x))
    return g * (t + x * taeda.sigmoid(x) * (1 - t * t))


@of("sigmoid_backward")
def sigmoid_backward(g: Tensor, y: Tensor) -> Tensor:
    """g y (1 - y)"""
    return g * (y * (1 - y)).conj()


@of("tanh_backward")
def tanh_backward(g: Tensor, y: Tensor) -> Tensor:
    """g (1 - y^2)"""
    return g * (1 - y * y).conj()


@of("threshold")
def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x where x > threshold, else value"""
    return taeda.where(x <= threshold, value, x)


@of("threshold_backward")
def threshold_backward(g: Tensor, x: Tensor, threshold: float) -> Tensor:
    """g where x > threshold, else 0"""
    return taeda.where(x <= threshold, 0, g)


@of("hardshrink")
def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """0 where |x| <= lambd"""
    return taeda.where(taeda.abs(x) <= lambd, 0, x)


@of("softshrink")
def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x moved by lambd towards 0, which it does not pass"""
    return taeda.where(taeda.abs(x) > lambd, x - taeda.sign(x) * lambd, x * 0)


@of("log_sigmoid_forward")
@wide
def log_sigmoid_forward(x: Tensor) -> tuple[Tensor, Tensor]:
    """min(x, 0) - log(1 + exp(-|x|)), and a buffer of which there is no need."""
    least = taeda.minimum(x, taeda.zeros((), dtype=x.dtype, device=x.device))
    return least - taeda.log1p(taeda.exp(-taeda.abs(x))), x.new_zeros((0,))


@of("log_sigmoid_backward")
@wide
def log_sigmoid_backward(g: Tensor, x: Tensor, buffer: Tensor) -> Tensor:
    """g sigmoid(-x)"""
    z = taeda.exp(-taeda.abs(x))
    return g * taeda.where(x < 0, 1 - z / (1 + z), z / (1 + z))


@of("_prelu_kernel")
def _prelu_kernel(x: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight x"""
    return taeda.where(x > 0, x, weight * x)


@new("_prelu_kernel_backward(Tensor grad_output, Tensor self, Tensor weight) -> (Tensor, Tensor)")
def _prelu_kernel_backward(g: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of x and of the weight, not summed."""
    return taeda.where(x > 0, g, weight * g), taeda.where(x > 0, 0, x * g)


@new("glu(Tensor self, int dim=-1) -> Tensor")
def glu(x: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension, gated by the sigmoid of the second."""
    a, b = x.chunk(2, dim)
    return a * taeda.sigmoid(b)


@new("glu_backward(Tensor grad_output, Tensor self, int dim) -> Tensor")
@wide
def glu_backward(g: Tensor, x: Tensor, dim: int) -> Tensor:
    """g s for the first half, g a s (1 - s) for the second"""
    a, b = x.chunk(2, dim)
    s = taeda.sigmoid(b)
    return taeda.cat([g * s, (1 - s) * s * g * a], dim)


@new("log_sigmoid(Tensor self) -> Tensor")
def log_sigmoid(x: Tensor) -> Tensor:
    """log(sigmoid(x))"""
    return log_sigmoid_forward(x)[0]


_RRELU = "Scalar lower=0.125, Scalar upper=0.33333333333333331, bool training=False"


@new(f"rrelu_with_noise(Tensor self, Tensor(b!) noise, {_RRELU}, Generator? generator=None)"
     " -> Tensor")  # fmt: skip
def rrelu_with_noise(
    x: Tensor, noise: Tensor, lower: float = 0.125, upper: float = 1 / 3,
    training: bool = False, generator: Any = None,
) -> Tensor:  # fmt: skip
    """leaky_relu with slopes that are drawn; `noise` becomes the slopes."""
    if not training:
        return leaky_relu(x, (lower + upper) / 2)
    sign = taeda.where(x.detach() <= 0, -1.0, 1.0).to(x.dtype)
    noise.copy_(taeda.rrelu(sign, lower, upper, True, generator) * sign)
    return x * noise


# --- softmax ---


@of("_softmax")
@wide
def _softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """exp(x - max) / sum"""
    e = taeda.exp(x - x.amax(dim, keepdim=True)) if x.numel() else taeda.exp(x)
    return e / e.sum(dim, keepdim=True)


@of("_log_softmax")
@wide
def _log_softmax(x: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """x - max - log(sum(exp(x - max)))"""
    shifted = x - x.amax(dim, keepdim=True) if x.numel() else x
    return shifted - taeda.log(taeda.exp(shifted).sum(dim, keepdim=True))


@of("_safe_softmax")
def _safe_softmax(x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """softmax, 0 where a whole row is -inf"""
    masked = (x == -math.inf).all(dim, keepdim=True)
    return taeda.where(masked, 0, taeda.softmax(x, dim, dtype=dtype))


@of("_softmax_backward_data")
def _softmax_backward_data(g: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    """y (g - sum(y g))"""
    product = g * y
    return (product - y * product.sum(dim, keepdim=True)).to(dtype)


@of("_log_softmax_backward_data")
def _log_softmax_backward_data(g: Tensor, y: Tensor, dim: int, dtype: Any) -> Tensor:
    """g - exp(y) sum(g)"""
    return (g - taeda.exp(y) * g.sum(dim, keepdim=True)).to(dtype)
