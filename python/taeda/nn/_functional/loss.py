"""Losses. `size_average` and `reduce` are the deprecated forms of `reduction`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn._reduction import get_enum, legacy_get_string

from .distance import pairwise_distance
from .raw import raw

__all__ = [
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "huber_loss",
    "nll_loss",
    "cross_entropy",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "poisson_nll_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "multilabel_margin_loss",
    "soft_margin_loss",
    "multilabel_soft_margin_loss",
    "cosine_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

_mse_loss = raw("mse_loss")
_l1_loss = raw("l1_loss")
_smooth_l1_loss = raw("smooth_l1_loss")
_huber_loss = raw("huber_loss")
_nll_loss = raw("nll_loss")
_cross_entropy = raw("cross_entropy")
_binary_cross_entropy = raw("binary_cross_entropy")
_binary_cross_entropy_with_logits = raw("binary_cross_entropy_with_logits")
_kl_div = raw("kl_div")


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    get_enum(reduction)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def _warn_sizes(input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}). This will likely lead to incorrect results due to broadcasting. "
            "Please ensure they have the same size.",
            stacklevel=3,
        )


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """Weighs unreduced losses; the mean divides by the sum of the weights."""
    if weight.shape != loss.shape:
        raise ValueError("Weights and input must have the same size.")
    weighted = loss * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    return _reduce(weighted, reduction)


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``(x - y)^2``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if input.shape != target.shape:
        _warn_sizes(input, target)
        input, target = taeda.broadcast_tensors(input, target)
    if weight is not None:
        return _weighted(_mse_loss(input, target, reduction="none"), weight, reduction)
    return _mse_loss(input, target, reduction=reduction)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """``|x - y|``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if input.shape != target.shape:
        _warn_sizes(input, target)
        input, target = taeda.broadcast_tensors(input, target)
    if weight is not None:
        return _weighted(_l1_loss(input, target, reduction="none"), weight, reduction)
    return _l1_loss(input, target, reduction=reduction)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """``(x - y)^2 / (2 beta)`` where ``|x - y| < beta``, else ``|x - y| - beta / 2``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if input.shape != target.shape:
        _warn_sizes(input, target)
        input, target = taeda.broadcast_tensors(input, target)
    if beta == 0.0:
        return _l1_loss(input, target, reduction=reduction)
    return _smooth_l1_loss(input, target, reduction=reduction, beta=beta)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """``(x - y)^2 / 2`` where ``|x - y| <= delta``, else ``delta (|x - y| - delta / 2)``."""
    if input.shape != target.shape:
        _warn_sizes(input, target)
        input, target = taeda.broadcast_tensors(input, target)
    if weight is not None:
        loss = _huber_loss(input, target, reduction="none", delta=delta)
        return _weighted(loss, weight, reduction)
    return _huber_loss(input, target, reduction=reduction, delta=delta)


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-weight[y] x[y]`` for log-probabilities ``(n, c, ...)`` and class indices ``(n, ...)``."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    return _nll_loss(input, target, weight=weight, ignore_index=ignore_index, reduction=reduction)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """``-log softmax(x)[y]`` for logits ``(n, c, ...)`` and class indices or probabilities."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    return _cross_entropy(
        input,
        target,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``-(y log x + (1 - y) log(1 - x))``, with logarithms clamped at -100, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size "
            f"({input.size()}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        weight = weight.expand(taeda.broadcast_shapes(target.size(), weight.size()))
    return _binary_cross_entropy(input, target, weight=weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """``binary_cross_entropy(sigmoid(x), y)`` without overflow."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if target.shape != input.shape:
        raise ValueError(
            f"Target size ({target.size()}) must be the same as input size ({input.size()})"
        )
    return _binary_cross_entropy_with_logits(
        input, target, weight=weight, pos_weight=pos_weight, reduction=reduction
    )


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """``y (log y - x)``, for log-probabilities x; "batchmean" divides the sum by the batch size."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math "
            "definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if reduction == "batchmean":
        total = _kl_div(input, target, reduction="sum", log_target=log_target)
        return total / input.size(0) if input.dim() != 0 else total
    return _kl_div(input, target, reduction=reduction, log_target=log_target)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``exp(x) - y x`` (``x - y log(x + eps)`` unless ``log_input``), plus Stirling if ``full``."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    get_enum(reduction)
    if log_input:
        loss = input.exp() - target * input
    else:
        loss = input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduce(loss, reduction)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """``(log(var) + (x - y)^2 / var) / 2``, with the variance clamped at ``eps``, reduced."""
    if not isinstance(var, Tensor):
        if isinstance(var, bool) or not isinstance(var, (int, float)):
            raise TypeError(f"var must be a Tensor or a float, got {type(var).__name__}")
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = taeda.full((), float(var), dtype=input.dtype, device=input.device).expand(
            input.size()
        )
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not _broadcasts_to(var, input):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    clamped = var.clone()
    with taeda.no_grad():
        clamped.clamp_(min=eps)
    loss = 0.5 * (clamped.log() + (input - target) ** 2 / clamped)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return _reduce(loss, reduction)


def _broadcasts_to(var: Tensor, input: Tensor) -> bool:
    """Whether ``var`` has the size of ``input`` except for one dimension, which is 1."""
    pairs = zip(input.size(), var.size())
    return input.dim() == var.dim() and [v for n, v in pairs if n != v] == [1]


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``x`` where ``y == 1``, ``max(0, margin - x)`` where ``y == -1``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    zeros = taeda.zeros_like(input)
    positive = taeda.where(target != -1, input, zeros)
    negative = taeda.where(target != 1, (margin - input).clamp(min=0), zeros)
    return _reduce(positive + negative, reduction)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum_ij max(0, 1 - (x[y_j] - x[i])) / c`` over targets j (up to the first -1), others i."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if input.shape != target.shape or input.dim() > 2:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    single = input.dim() < 2
    x = input.reshape(1, -1) if single else input
    y = target.reshape(1, -1) if single else target
    valid = (y < 0).to(taeda.int64).cumsum(1) == 0  # targets end at the first -1
    index = y.clamp(min=0)
    is_target = taeda.zeros_like(x).scatter_add_(1, index, valid.to(x.dtype)) > 0
    gap = 1 - x.gather(1, index).unsqueeze(2) + x.unsqueeze(1)  # n, targets, classes
    used = valid.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = taeda.where(used, gap.clamp(min=0), taeda.zeros_like(gap)).sum((1, 2)) / x.size(1)
    return _reduce(loss.squeeze(0) if single else loss, reduction)


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``log(1 + exp(-y x))``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    return _reduce(taeda.logaddexp(-target * input, taeda.zeros_like(input)), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of ``binary_cross_entropy_with_logits``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    log_sigmoid = raw("logsigmoid")
    loss = -(target * log_sigmoid(input) + (1 - target) * log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return _reduce(loss.sum(-1) / input.size(-1), reduction)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``1 - cos`` where ``y == 1``, ``max(0, cos - margin)`` where ``y == -1``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    get_enum(reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    wanted = (2, "1D target tensor") if target.dim() == 1 else (1, "0D target tensor")
    if input1.dim() != wanted[0] or input2.dim() != wanted[0]:
        raise RuntimeError(
            f"{wanted[1]} expects {wanted[0]}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    eps = 1e-12
    dot = (input1 * input2).sum(-1)
    squares = ((input1 * input1).sum(-1) + eps) * ((input2 * input2).sum(-1) + eps)
    cos = dot / squares.sqrt()
    zeros = taeda.zeros_like(cos)
    positive = taeda.where(target == 1, 1 - cos, zeros)
    negative = taeda.where(target == -1, (cos - margin).clamp(min=0), zeros)
    return _reduce(positive + negative, reduction)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, -y (x1 - x2) + margin)``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if input1.dim() != input2.dim() or input1.dim() != target.dim():
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return _reduce((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``sum_i weight[y] max(0, margin - x[y] + x[i])^p / c`` over the other classes i, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    single = input.dim() < 2
    x = input.reshape(1, -1) if single else input
    y = target.reshape(-1, 1)
    if y.size(0) != x.size(0):
        raise RuntimeError(
            f"inconsistent target size, expected {x.size(0)} but got {list(target.shape)}"
        )
    loss = (margin - x.gather(1, y) + x).clamp(min=0)
    if p == 2:
        loss = loss * loss
    if weight is not None:
        loss = loss * weight[y]
    others = taeda.ones_like(x).scatter_(1, y, 0.0)
    loss = (loss * others).sum(1) / x.size(1)
    return _reduce(loss.squeeze(0) if single else loss, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """``max(0, |a - p| - |a - n| + margin)``, reduced."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )

    def distance(x1: Tensor, x2: Tensor) -> Tensor:
        return pairwise_distance(x1, x2, p, eps)

    return _triplet(distance, anchor, positive, negative, margin, swap, reduction)


def _triplet(
    distance: Callable[[Tensor, Tensor], Tensor],
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float,
    swap: bool,
    reduction: str,
) -> Tensor:
    to_positive = distance(anchor, positive)
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = taeda.minimum(to_negative, distance(positive, negative))
    return _reduce((margin + to_positive - to_negative).clamp(min=0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """``triplet_margin_loss`` with any distance function."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and "
            f"negative {negative.dim()}D inputs"
        )
    distance: Any = distance_function
    if distance is None:
        distance = pairwise_distance
    return _triplet(distance, anchor, positive, negative, margin, swap, reduction)
