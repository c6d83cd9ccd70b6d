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
    """Weight and bias of one convolution that does both."""
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
    """Weight and bias of one linear layer that does both."""
    return _folded(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def fuse_conv_bn_eval(conv: T, bn: Any, transpose: bool = False) -> T:
    """A copy of ``conv`` that also does what ``bn`` does in evaluation."""
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
    """A copy of ``linear`` that also does what ``bn`` does in evaluation."""
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
