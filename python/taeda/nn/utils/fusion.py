"""Batch normalization folded into the layer before it, for inference."""

from __future__ import annotations

import copy
from typing import Any, TypeVar

import taeda
from taeda import Tensor
from taeda.nn.modules.module import Module
from taeda.nn.parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]

T = TypeVar("T", bound=Module)


def _folded(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    gamma: Tensor | None,
    beta: Tensor | None,
    out_dim: int,
) -> tuple[Parameter, Parameter]:
    """``gamma (W x + b - mean) / sqrt(var + eps) + beta`` as one weight and one bias."""
    trained = weight.requires_grad
    bias_trained = trained if bias is None else bias.requires_grad
    scale = (var + eps).rsqrt()
    if gamma is not None:
        scale = scale * gamma
    bias = taeda.zeros_like(mean) if bias is None else bias
    shape = [1] * weight.dim()
    shape[out_dim] = -1
    new_weight = (weight * scale.reshape(shape)).to(weight.dtype)
    new_bias = (bias - mean) * scale
    if beta is not None:
        new_bias = new_bias + beta
    return Parameter(new_weight, trained), Parameter(new_bias.to(bias.dtype), bias_trained)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of one convolution that computes what it and the batch normalization behind
    it do in evaluation: ``w * bn_w / sqrt(bn_rv + bn_eps)`` and ``(b - bn_rm) * bn_w /
    sqrt(bn_rv + bn_eps) + bn_b``.

    Args:
        conv_w, conv_b: the convolution's parameters; a missing bias counts as zeros.
        bn_rm, bn_rv, bn_eps: the running mean and variance, and what is added to the variance.
        bn_w, bn_b: the normalization's parameters; None: 1 and 0.
        transpose: whether the convolution is a transposed one.

    Returns:
        two Parameters that require a gradient where the convolution's do.
    """
    out_dim = 1 if transpose else 0
    return _folded(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, out_dim)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of one linear layer that computes what it and the batch normalization behind
    it do in evaluation: ``w * bn_w / sqrt(bn_rv + bn_eps)`` and ``(b - bn_rm) * bn_w /
    sqrt(bn_rv + bn_eps) + bn_b``.

    Args:
        linear_w, linear_b: the linear layer's parameters; a missing bias counts as zeros.
        bn_rm, bn_rv, bn_eps: the running mean and variance, and what is added to the variance.
        bn_w, bn_b: the normalization's parameters; None: 1 and 0.

    Returns:
        two Parameters that require a gradient where the linear layer's do.
    """
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def fuse_conv_bn_eval(conv: T, bn: Any, transpose: bool = False) -> T:
    """A copy of ``conv`` that also does what ``bn`` does in evaluation: one layer instead of two
    for inference.

    Args:
        conv: a convolution in evaluation mode.
        bn: the batch normalization behind it, in evaluation mode.
        transpose: whether it is a transposed convolution.

    Raises:
        AssertionError: one of them is in training mode, in which a normalization depends on the
            batch.

    >>> conv, bn = torch.nn.Conv2d(3, 4, 1).eval(), torch.nn.BatchNorm2d(4).eval()
    >>> fused, x = torch.nn.utils.fusion.fuse_conv_bn_eval(conv, bn), torch.ones(1, 3, 2, 2)
    >>> torch.allclose(fused(x), bn(conv(x)), atol=1e-6)
    True
    """
    if conv.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused: Any = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        transpose,
    )
    return fused


def fuse_linear_bn_eval(linear: T, bn: Any) -> T:
    """A copy of ``linear`` that also does what ``bn`` does in evaluation: one layer instead of two
    for inference.

    Args:
        linear: a linear layer in evaluation mode.
        bn: the batch normalization behind it, in evaluation mode, over its outputs.

    Raises:
        AssertionError: one of them is in training mode, or their sizes do not fit.
    """
    if linear.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1"
        )
    fused: Any = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight,
        fused.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
    )
    return fused
