"""Operators by simpler ones. Each has its operator's signature and numbers."""

from __future__ import annotations

import math
from typing import Any

import taeda
from taeda import Tensor
from taeda._ops import ops

from . import register_decomposition

aten = ops.aten


def _computed(x: Tensor) -> Tensor:
    """`x` in float32 where it is of half precision."""
    return x.float() if x.dtype in (taeda.float16, taeda.bfloat16) else x


# --- activations ---


@register_decomposition(aten.silu.default)
def silu(self: Tensor) -> Tensor:
    """x sigmoid(x)"""
    x = _computed(self)
    return (x * taeda.sigmoid(x)).to(self.dtype)


@register_decomposition(aten.silu_backward.default)
def silu_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    """g s (1 + x (1 - s)), s = sigmoid(x)"""
    x, g = _computed(self), _computed(grad_output)
    s = taeda.sigmoid(x)
    return (g * s * (1 + x * (1 - s))).to(grad_output.dtype)


@register_decomposition(aten.gelu.default)
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    """x Phi(x), or with a tanh in place of Phi."""
    x = _computed(self)
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        return (0.5 * x * (1 + taeda.tanh(inner))).to(self.dtype)
    return (0.5 * x * (1 + taeda.erf(x * math.sqrt(0.5)))).to(self.dtype)


@register_decomposition(aten.hardsigmoid.default)
def hardsigmoid(self: Tensor) -> Tensor:
    """clamp(x + 3, 0, 6) / 6"""
    return (taeda.clamp(_computed(self) + 3, 0, 6) / 6).to(self.dtype)


@register_decomposition(aten.hardswish.default)
def hardswish(self: Tensor) -> Tensor:
    """x clamp(x + 3, 0, 6) / 6"""
    x = _computed(self)
    return (x * taeda.clamp(x + 3, 0, 6) / 6).to(self.dtype)


@register_decomposition(aten.hardtanh.default)
def hardtanh(self: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """clamp(x, min_val, max_val)"""
    return taeda.clamp(self, min_val, max_val)


@register_decomposition(aten.leaky_relu.default)
def leaky_relu(self: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x where x > 0, else negative_slope x"""
    return taeda.where(self > 0, self, self * negative_slope)


@register_decomposition(aten.elu.default)
def elu(self: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """scale x where x > 0, else scale alpha (exp(input_scale x) - 1)"""
    x = _computed(self)
    below = taeda.expm1(x * input_scale) * (alpha * scale)
    return taeda.where(x > 0, x * scale, below).to(self.dtype)


@register_decomposition(aten.softplus.default)
def softplus(self: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta x)) / beta, x where beta x > threshold"""
    x = _computed(self)
    scaled = x * beta
    return taeda.where(scaled > threshold, x, taeda.log1p(taeda.exp(scaled)) / beta).to(self.dtype)


@register_decomposition(aten.mish.default)
def mish(self: Tensor) -> Tensor:
    """x tanh(softplus(x))"""
    x = _computed(self)
    return (x * taeda.tanh(softplus(x))).to(self.dtype)


@register_decomposition(aten.sigmoid_backward.default)
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """g y (1 - y)"""
    return grad_output * (output * (1 - output))


@register_decomposition(aten.tanh_backward.default)
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    """g (1 - y^2)"""
    return grad_output * (1 - output * output)


@register_decomposition(aten.threshold_backward.default)
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: float) -> Tensor:
    """g where x > threshold, else 0"""
    return taeda.where(self <= threshold, 0, grad_output)


# --- softmax ---


@register_decomposition(aten._softmax.default)
def _softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """exp(x - max) / sum"""
    x = _computed(self)
    e = taeda.exp(x - x.amax(dim, keepdim=True)) if x.numel() else taeda.exp(x)
    result = e / e.sum(dim, keepdim=True)
    return result if half_to_float else result.to(self.dtype)


@register_decomposition(aten._log_softmax.default)
def _log_softmax(self: Tensor, dim: int, half_to_float: bool) -> Tensor:
    """x - max - log(sum(exp(x - max)))"""
    x = _computed(self)
    shifted = x - x.amax(dim, keepdim=True) if x.numel() else x
    result = shifted - taeda.log(taeda.exp(shifted).sum(dim, keepdim=True))
    return result if half_to_float else result.to(self.dtype)


@register_decomposition(aten._softmax_backward_data.default)
def _softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any
) -> Tensor:
    """y (g - sum(y g))"""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


@register_decomposition(aten._log_softmax_backward_data.default)
def _log_softmax_backward_data(
    grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any
) -> Tensor:
    """g - exp(y) sum(g)"""
    total = grad_output.sum(dim, keepdim=True)
    return (grad_output - taeda.exp(output) * total).to(input_dtype)


# --- arithmetic ---


@register_decomposition(aten.addcmul.default)
def addcmul(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """x + value a b"""
    return self + value * tensor1 * tensor2


@register_decomposition(aten.addcdiv.default)
def addcdiv(self: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: float = 1) -> Tensor:
    """x + value a / b"""
    return self + value * (tensor1 / tensor2)


@register_decomposition(aten.addmm.default)
def addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a b"""
    product = taeda.mm(mat1, mat2)
    product = product if alpha == 1 else alpha * product
    return product if beta == 0 else product + (self if beta == 1 else beta * self)


@register_decomposition(aten.addmv.default)
def addmv(self: Tensor, mat1: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta x + alpha a v"""
    product = alpha * taeda.mv(mat1, vec)
    return product if beta == 0 else product + beta * self


@register_decomposition(aten.rsub.Tensor)
def rsub(self: Tensor, other: Tensor, *, alpha: float = 1) -> Tensor:
    """other - alpha x"""
    return taeda.sub(other, self, alpha=alpha)


@register_decomposition(aten.xlogy.Tensor)
def xlogy(self: Tensor, other: Tensor) -> Tensor:
    """x log(y), 0 where x is, NaN where y is"""
    result = taeda.where(self == 0, 0, self * taeda.log(other))
    return taeda.where(taeda.isnan(other), math.nan, result)


@register_decomposition(aten.frac.default)
def frac(self: Tensor) -> Tensor:
    """x - trunc(x)"""
    return self - taeda.trunc(self)


@register_decomposition(aten.sinc.default)
def sinc(self: Tensor) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0"""
    scaled = math.pi * self
    return taeda.where(scaled == 0, 1, taeda.sin(scaled) / scaled)


@register_decomposition(aten.masked_fill.Scalar)
def masked_fill(self: Tensor, mask: Tensor, value: float) -> Tensor:
    """value where the mask is True"""
    return taeda.where(mask, taeda.scalar_tensor(value, dtype=self.dtype), self)


@register_decomposition(aten.tril.default)
def tril(self: Tensor, diagonal: int = 0) -> Tensor:
    """What is on and below a diagonal."""
    rows, columns = (taeda.arange(n, device=self.device) for n in self.shape[-2:])
    kept = columns <= rows.unsqueeze(-1) + diagonal
    return taeda.where(kept, self, taeda.zeros((), dtype=self.dtype, device=self.device))


@register_decomposition(aten.triu.default)
def triu(self: Tensor, diagonal: int = 0) -> Tensor:
    """What is on and above a diagonal."""
    rows, columns = (taeda.arange(n, device=self.device) for n in self.shape[-2:])
    kept = columns >= rows.unsqueeze(-1) + diagonal
    return taeda.where(kept, self, taeda.zeros((), dtype=self.dtype, device=self.device))


# --- normalization and lookup ---


@register_decomposition(aten.native_layer_norm.default)
def native_layer_norm(
    input: Tensor, normalized_shape: Any, weight: Any, bias: Any, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """((x - mean) / std weight + bias, mean, 1 / std) over the last dimensions"""
    x = _computed(input)
    dims = list(range(x.dim() - len(normalized_shape), x.dim()))
    mean = x.mean(dims, keepdim=True)
    rstd = taeda.rsqrt(((x - mean) ** 2).mean(dims, keepdim=True) + eps)
    result = (x - mean) * rstd
    if weight is not None:
        result = result * weight
    if bias is not None:
        result = result + bias
    return result.to(input.dtype), mean, rstd


@register_decomposition(aten.embedding.default)
def embedding(
    weight: Tensor,
    indices: Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table."""
    return taeda.index_select(weight, 0, indices.reshape(-1)).view(*indices.shape, weight.shape[1])
