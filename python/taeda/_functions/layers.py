"""Layers and losses as functions of torch's own, which spell their arguments otherwise than F's.

A reduction is a number: 0 for none, which is what PyTorch takes if none is given, 1 for the mean, 2
for the sum. ``cudnn_enabled`` has no effect.
"""

from __future__ import annotations

import inspect
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda.nn import functional as F
from taeda.nn.functional import (  # noqa: F401
    channel_shuffle,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
)


def _word(reduction: int) -> str:
    if reduction not in (0, 1, 2):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return ("none", "mean", "sum")[reduction]


@_C._overridable
def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`F.batch_norm`."""
    if training and eps <= 0:  # which F.batch_norm refuses
        return taeda.native_batch_norm(
            input, weight, bias, running_mean, running_var, training, momentum, eps
        )[0]
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@_C._overridable
def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """`F.instance_norm`."""
    return F.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


@_C._overridable
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`F.alpha_dropout`."""
    return F.alpha_dropout(input, p, train)


def alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """`F.alpha_dropout` in place."""
    return F.alpha_dropout(self, p, train, inplace=True)


@_C._overridable
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """`F.feature_alpha_dropout`."""
    return F.feature_alpha_dropout(input, p, train)


def feature_alpha_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """`F.feature_alpha_dropout` in place."""
    return F.feature_alpha_dropout(self, p, train, inplace=True)


@_C._overridable
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels, of an input of two or more dimensions."""
    return _feature_dropout(input, p, train)


def feature_dropout_(self: Tensor, p: float, train: bool) -> Tensor:
    """`feature_dropout` in place."""
    return _feature_dropout(self, p, train, True)


def _feature_dropout(input: Tensor, p: float, train: bool, inplace: bool = False) -> Tensor:
    from taeda.nn._functional.dropout import _composite

    return _composite(True, False)(input, p, train, inplace)


@_C._overridable
def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """`F.rrelu`; draws from the default generator."""
    _refuse_generator(generator)
    return F.rrelu(input, lower, upper, training)


def rrelu_(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Tensor:
    """`rrelu` in place."""
    _refuse_generator(generator)
    return F.rrelu_(input, lower, upper, training)


def _refuse_generator(generator: Any) -> None:
    if generator is not None:
        raise NotImplementedError("rrelu: takes no generator; use torch.manual_seed")


@_C._overridable
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`F.bilinear`."""
    return F.bilinear(input1, input2, weight, bias)


@_C._overridable
def affine_grid_generator(theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    """`F.affine_grid`."""
    return F.affine_grid(theta, size, align_corners)


@_C._overridable
def grid_sampler_2d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`torch.grid_sampler` of images."""
    return taeda.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@_C._overridable
def _grid_sampler_2d_cpu_fallback(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`torch.grid_sampler` of images, by PyTorch's name of its kernel for any layout."""
    return taeda.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@_C._overridable
def grid_sampler_3d(
    input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`torch.grid_sampler` of volumes."""
    return taeda.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


@_C._overridable
def _native_batch_norm_legit(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any, **options: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """`torch.native_batch_norm` as PyTorch spells it for its compiler: ``running_mean, running_var,
    training, momentum, eps`` with statistics to be written, or ``training, momentum, eps`` without.

    >>> torch._native_batch_norm_legit(torch.tensor([[1.0], [3.0]]), None, None, True, 0.1, 0.0)[1]
    tensor([2.])
    """
    if len(rest) + len(options.keys() - {"out"}) == 3:
        rest = (None, None, *rest)
        if options.get("training", True) is False or (len(rest) > 2 and rest[2] is False):
            raise RuntimeError("running_mean and running_var must be defined in evaluation mode")
    return taeda.native_batch_norm(input, weight, bias, *rest, **options)


@_C._overridable
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The result of dropout and the bool mask of what it kept."""
    if train is False or input.numel() == 0:
        return input, taeda.ones_like(input, dtype=taeda.bool)
    if p == 1:
        return taeda.zeros_like(input), taeda.zeros_like(input, dtype=taeda.bool)
    mask = taeda.empty_like(input, dtype=taeda.bool).bernoulli_(1 - p)
    return input * mask * (1 / (1 - p)), mask


@_C._overridable
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but `dim`, which are kept; over all for -1."""
    if dim == -1:
        return v.norm(pow)
    if not -v.dim() <= dim < v.dim():
        raise IndexError(f"norm_except_dim: dim {dim} is out of range for {v.dim()} dimensions")
    dims = [d for d in range(v.dim()) if d != dim % v.dim()]
    return taeda.linalg.vector_norm(v, pow, dims, keepdim=True) if dims else v.abs()


@_C._overridable
def conv_tbc(self: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """Convolution of (time, batch, channels) with (width, channels in, channels out).

    >>> torch.conv_tbc(torch.ones(3, 1, 2), torch.ones(2, 2, 1), torch.zeros(1)).flatten()
    tensor([4., 4.])
    """
    if self.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels."
        )
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if self.size(2) != weight.size(1):
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor.")
    images = F.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad)
    return images.permute(2, 0, 1).contiguous()


@_C._overridable
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 0,
) -> Tensor:
    """`F.binary_cross_entropy_with_logits`."""
    return F.binary_cross_entropy_with_logits(
        input, target, weight, reduction=_word(reduction), pos_weight=pos_weight
    )


@_C._overridable
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`F.cosine_embedding_loss`."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_word(reduction))


@_C._overridable
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, reduction: int = 0
) -> Tensor:
    """`F.hinge_embedding_loss`."""
    return F.hinge_embedding_loss(input, target, margin, reduction=_word(reduction))


@_C._overridable
def kl_div(
    input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False
) -> Tensor:
    """`F.kl_div`."""
    return F.kl_div(input, target, reduction=_word(reduction), log_target=log_target)


@_C._overridable
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: int = 0
) -> Tensor:
    """`F.margin_ranking_loss`."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_word(reduction))


@_C._overridable
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int
) -> Tensor:
    """`F.poisson_nll_loss`."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_word(reduction))


@_C._overridable
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: int = 0,
) -> Tensor:
    """`F.triplet_margin_loss`."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_word(reduction)
    )


@_C._overridable
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 0,
    zero_infinity: bool = False,
) -> Tensor:
    """`F.ctc_loss`."""
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _word(reduction), zero_infinity
    )


def _describe_like_functional() -> None:
    """Docstrings: those of the functions of F, and what is different here."""
    for name, function in list(globals().items()):
        if getattr(function, "__doc__", None) == f"`F.{name}`.":
            function.__doc__ = (
                f"`nn.functional.{name}` with arguments as this signature has them: `reduction` is "
                "0 for none, 1 for the mean, 2 for the sum; `cudnn_enabled` has no effect. There:\n"
                f"\n{inspect.getdoc(getattr(F, name))}"
            )


_describe_like_functional()
