"""Normalization, dropout, and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor

from .registry import new, of, wide

Results = tuple[Any, ...]


def _affine(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias


def _moments(x: Tensor, dims: Sequence[int], eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """The mean, the biased variance and 1 / sqrt(variance + eps), with the dimensions kept."""
    mean = x.mean(dims, keepdim=True)
    variance = ((x - mean) ** 2).mean(dims, keepdim=True)
    return mean, variance, taeda.rsqrt(variance + eps)


def _masked(results: Sequence[Any], mask: Sequence[bool]) -> Results:
    return tuple(r if wanted else None for r, wanted in zip(results, mask))


# --- over the last dimensions ---


@of("native_layer_norm")
@wide
def native_layer_norm(
    x: Tensor, shape: Sequence[int], weight: Any, bias: Any, eps: float
) -> Results:
    """((x - mean) / std weight + bias, mean, 1 / std) over the last dimensions"""
    dims = list(range(x.dim() - len(shape), x.dim()))
    mean, _, rstd = _moments(x, dims, eps)
    return _affine((x - mean) * rstd, weight, bias), mean, rstd


def _centered_gradient(gx: Tensor, xhat: Tensor, rstd: Tensor, dims: Sequence[int]) -> Tensor:
    """The gradient through (x - mean) rstd: gx less its mean and its share along xhat."""
    return rstd * (gx - gx.mean(dims, keepdim=True) - xhat * (gx * xhat).mean(dims, keepdim=True))


@of("native_layer_norm_backward")
@wide
def native_layer_norm_backward(
    g: Tensor, x: Tensor, shape: Sequence[int], mean: Tensor, rstd: Tensor, weight: Any,
    bias: Any, output_mask: Sequence[bool],
) -> Results:  # fmt: skip
    """The gradients of x, weight and bias; None where the mask leaves one out."""
    outer = list(range(x.dim() - len(shape)))
    inner = list(range(x.dim() - len(shape), x.dim()))
    xhat = (x - mean) * rstd
    gx = _centered_gradient(g if weight is None else g * weight, xhat, rstd, inner)
    summed = (lambda t: t.sum(outer)) if outer else (lambda t: t)
    mask = (output_mask[0], output_mask[1] and weight is not None, output_mask[2])
    return _masked((gx, summed(g * xhat), summed(g)), (*mask[:2], mask[2] and bias is not None))


@new(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> "
    "(Tensor, Tensor)"
)
def _fused_rms_norm(x: Tensor, shape: Sequence[int], weight: Any, eps: float | None) -> Results:
    """x / sqrt(mean(x^2) + eps) weight, and that root's reciprocal"""
    dims = list(range(x.dim() - len(shape), x.dim()))
    y = x.float() if x.dtype in (taeda.float16, taeda.bfloat16) else x
    eps = taeda.finfo(y.dtype).eps if eps is None else eps
    rstd = taeda.rsqrt((y * y).mean(dims, keepdim=True) + eps)
    return _affine(y * rstd, weight, None).to(x.dtype), rstd


@new(
    "_fused_rms_norm_backward(Tensor grad_out, Tensor input, int[] normalized_shape, "
    "Tensor rstd, Tensor? weight, bool[2] output_mask) -> (Tensor, Tensor)"
)
@wide
def _fused_rms_norm_backward(
    g: Tensor, x: Tensor, shape: Sequence[int], rstd: Tensor, weight: Any, mask: Sequence[bool]
) -> Results:
    """The gradients of x and weight."""
    outer = list(range(x.dim() - len(shape)))
    inner = list(range(x.dim() - len(shape), x.dim()))
    xhat = x * rstd
    gx = g if weight is None else g * weight
    gx = rstd * (gx - xhat * (gx * xhat).mean(inner, keepdim=True))
    gw = (g * xhat).sum(outer) if outer else g * xhat
    return _masked((gx, gw), (mask[0], mask[1] and weight is not None))


# --- over groups of channels ---


@of("native_group_norm")
@wide
def native_group_norm(
    x: Tensor, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> Results:
    """((x - mean) / std weight + bias, mean, 1 / std) over each group of channels"""
    mean, _, rstd = _moments(x.reshape(N, group, -1), [2], eps)
    y = ((x.reshape(N, group, -1) - mean) * rstd).reshape(x.shape)
    shape = [1, C, *[1] * (x.dim() - 2)]
    weight, bias = (None if p is None else p.reshape(shape) for p in (weight, bias))
    return _affine(y, weight, bias), mean.reshape(N, group), rstd.reshape(N, group)


@of("native_group_norm_backward")
@wide
def native_group_norm_backward(
    g: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Any, N: int, C: int, HxW: int,
    group: int, output_mask: Sequence[bool],
) -> Results:  # fmt: skip
    """The gradients of x, weight and bias; None where the mask leaves one out."""
    rstd = rstd.reshape(N, group, 1)
    xhat = (x.reshape(N, group, -1) - mean.reshape(N, group, 1)) * rstd
    gy = g.reshape(N, C, HxW)
    gx = gy if weight is None else gy * weight.reshape(1, C, 1)
    gx = _centered_gradient(gx.reshape(N, group, -1), xhat, rstd, [2]).reshape(x.shape)
    gw = (gy * xhat.reshape(N, C, HxW)).sum([0, 2])
    return _masked((gx, gw, gy.sum([0, 2])), output_mask)


# --- over the batch ---


def _batch_norm(
    x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
    eps: float,
) -> Results:  # fmt: skip
    """The result, what is saved (mean and 1 / std, without gradients), the new running averages."""
    dims = [0, *range(2, x.dim())]
    shape = [1, -1, *[1] * (x.dim() - 2)]
    wide_x = x.float() if x.dtype in (taeda.float16, taeda.bfloat16) else x
    saved: Results
    if training:
        center, variance, rstd = _moments(wide_x, dims, eps)
        saved = center.reshape(-1).detach(), rstd.reshape(-1).detach()
        count = x.numel() / x.shape[1]
        if mean is not None:
            mean = momentum * saved[0] + (1 - momentum) * mean
        if var is not None:
            unbiased = variance.reshape(-1) * (count / (count - 1))
            var = momentum * unbiased + (1 - momentum) * var
    else:
        center = mean.reshape(shape)
        rstd = taeda.rsqrt(var + eps).reshape(shape)
        saved = x.new_zeros((0,)), x.new_zeros((0,))
    weight, bias = (None if p is None else p.reshape(shape) for p in (weight, bias))
    return _affine((wide_x - center) * rstd, weight, bias).to(x.dtype), *saved, mean, var


def _updating(
    x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, training: bool, momentum: float,
    eps: float,
) -> Results:  # fmt: skip
    """`_batch_norm` that writes the running averages."""
    *results, new_mean, new_var = _batch_norm(x, weight, bias, mean, var, training, momentum, eps)
    if training and mean is not None:
        mean.copy_(new_mean)
    if training and var is not None:
        var.copy_(new_var)
    return tuple(results)


of("native_batch_norm")(_updating)
_INPUT = "Tensor input, Tensor? weight, Tensor? bias"
_STEP = "float momentum, float eps"
_RUNNING = "Tensor running_mean, Tensor running_var"
_WRITTEN = "Tensor(a!) running_mean, Tensor(b!) running_var"
_THREE = "(Tensor, Tensor, Tensor)"
new(f"_native_batch_norm_legit({_INPUT}, {_WRITTEN}, bool training, {_STEP}) -> {_THREE}")(
    _updating
)


@new(f"_native_batch_norm_legit.no_stats({_INPUT}, bool training, {_STEP}) -> {_THREE}")
def _without_averages(x: Tensor, weight: Any, bias: Any, training: bool, *step: float) -> Results:
    return _batch_norm(x, weight, bias, None, None, True, *step)[:3]


@new(f"_native_batch_norm_legit_no_training({_INPUT}, {_RUNNING}, {_STEP}) -> {_THREE}")
def _without_training(
    x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, *step: float
) -> Results:
    return _batch_norm(x, weight, bias, mean, var, False, *step)[:3]


new(
    f"_native_batch_norm_legit_functional({_INPUT}, {_RUNNING}, bool training, {_STEP}) -> "
    "(Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)"
)(_batch_norm)


@new(f"_batch_norm_with_update({_INPUT}, {_WRITTEN}, {_STEP}) -> (Tensor, Tensor, Tensor, Tensor)")
def _batch_norm_with_update(
    x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, *step: float
) -> Results:
    """In training; the last result is what cuDNN would keep: nothing."""
    results = _updating(x, weight, bias, mean, var, True, *step)
    return *results, x.new_zeros((0,), dtype=taeda.uint8)


@new(
    f"_batch_norm_no_update({_INPUT}, Tensor? running_mean, Tensor? running_var, {_STEP}) -> "
    "(Tensor, Tensor, Tensor, Tensor)"
)
def _batch_norm_no_update(
    x: Tensor, weight: Any, bias: Any, mean: Any, var: Any, *step: float
) -> Results:
    training = mean is None
    results = _batch_norm(x, weight, bias, mean, var, training, *step)[:3]
    return *results, x.new_zeros((0,), dtype=taeda.uint8)


@new(
    f"_batch_norm_with_update_functional({_INPUT}, {_RUNNING}, {_STEP}) -> (Tensor, Tensor, "
    "Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)"
)
def _batch_norm_with_update_functional(
    x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, *step: float
) -> Results:
    y, *saved, mean, var = _batch_norm(x, weight, bias, mean, var, True, *step)
    return y, *saved, x.new_zeros((0,), dtype=taeda.uint8), mean, var


@of("native_batch_norm_backward")
@wide
def native_batch_norm_backward(
    g: Tensor, x: Tensor, weight: Any, mean: Any, var: Any, saved_mean: Any, saved_rstd: Any,
    train: bool, eps: float, output_mask: Sequence[bool],
) -> Results:  # fmt: skip
    """The gradients of x, weight and bias; None where the mask leaves one out."""
    dims = [0, *range(2, x.dim())]
    shape = [1, -1, *[1] * (x.dim() - 2)]
    if train:
        center, rstd = saved_mean.reshape(shape), saved_rstd.reshape(shape)
    else:
        center, rstd = mean.reshape(shape), taeda.rsqrt(var + eps).reshape(shape)
    xhat = (x - center) * rstd
    gx = g if weight is None else g * weight.reshape(shape)
    gx = _centered_gradient(gx, xhat, rstd, dims) if train else gx * rstd
    return _masked((gx, (g * xhat).sum(dims), g.sum(dims)), output_mask)


@new(
    "batch_norm_backward(Tensor grad_out, Tensor input, Tensor weight, Tensor? running_mean, "
    "Tensor? running_var, Tensor? save_mean, Tensor? save_var, bool update, float eps, "
    f"bool[3] output_mask, Tensor reserve) -> {_THREE}"
)
def batch_norm_backward(*args: Any) -> Results:
    """`native_batch_norm_backward`, with what cuDNN would keep."""
    return native_batch_norm_backward(*args[:10])


# --- dropout and weights ---


@of("native_dropout")
def native_dropout(x: Tensor, p: float, train: bool | None) -> Results:
    """What is kept with probability 1 - p, scaled by 1 / (1 - p), and where it is kept."""
    if train is False or p == 0:
        return x.clone(), taeda.ones_like(x, dtype=taeda.bool)
    if p == 1:
        return taeda.zeros_like(x), taeda.zeros_like(x, dtype=taeda.bool)
    mask = taeda.rand_like(x) > p
    return mask * x * (1.0 / (1.0 - p)), mask


@of("native_dropout_backward")
def native_dropout_backward(g: Tensor, mask: Tensor, scale: float) -> Tensor:
    """g mask scale"""
    return g * (mask.to(g.dtype) * scale)


@new("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor")
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but one, which are kept; over all where `dim` is -1."""
    if dim == -1:
        return v.norm(pow)
    dims = [d for d in range(v.dim()) if d != dim % v.dim()]
    return taeda.linalg.vector_norm(v, pow, dims, keepdim=True)


@new("_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)")
def _weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> Results:
    """v g / |v|, and the norms"""
    norm = norm_except_dim(v, 2, dim)
    return v * (g / norm.to(g.dtype)), norm


@of("_weight_norm")
def _weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v g / |v|"""
    return _weight_norm_interface(v, g, dim)[0]
