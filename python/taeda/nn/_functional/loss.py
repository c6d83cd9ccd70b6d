"""Losses: the warnings around those of the table, and two that are not there."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn._reduction import get_enum, legacy_get_string

from .raw import raw

# Losses of two tensors of one size: another size broadcasts, which is seldom meant.
_SAME_SIZE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
_OTHERS = (
    "nll_loss",
    "cross_entropy",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "kl_div",
    "poisson_nll_loss",
    "hinge_embedding_loss",
    "soft_margin_loss",
    "multilabel_soft_margin_loss",
    "cosine_embedding_loss",
    "margin_ranking_loss",
    "multi_margin_loss",
    "triplet_margin_loss",
)

__all__ = [
    *_SAME_SIZE,
    *_OTHERS,
    "multilabel_margin_loss",
    "triplet_margin_with_distance_loss",
]


def _warning(name: str) -> Callable[..., Tensor]:
    """The table's loss, with PyTorch's warnings of sizes that differ and of deprecated flags."""
    function = raw(name)
    same_size = name in _SAME_SIZE

    @functools.wraps(function)
    def loss(*args: Any, **kwargs: Any) -> Tensor:
        if same_size and len(args) >= 2 and args[0].shape != args[1].shape:
            warnings.warn(
                f"Using a target size ({args[1].size()}) that is different to the input size "
                f"({args[0].size()}). This will likely lead to incorrect results due to "
                "broadcasting. Please ensure they have the same size.",
                stacklevel=2,
            )
        if "size_average" in kwargs or "reduce" in kwargs:
            flags = kwargs.get("size_average"), kwargs.get("reduce")
            if flags != (None, None):
                legacy_get_string(*flags)
        if name == "kl_div" and kwargs.get("reduction", "mean") == "mean":
            warnings.warn(
                "reduction: 'mean' divides the total loss by both the batch size and the support "
                "size.'batchmean' divides only by the batch size, and aligns with the KL div math "
                "definition.'mean' will be changed to behave the same as 'batchmean' in the next "
                "major release.",
                stacklevel=2,
            )
        return function(*args, **kwargs)

    return loss


mse_loss = _warning("mse_loss")
l1_loss = _warning("l1_loss")
smooth_l1_loss = _warning("smooth_l1_loss")
huber_loss = _warning("huber_loss")
nll_loss = _warning("nll_loss")
cross_entropy = _warning("cross_entropy")
binary_cross_entropy = _warning("binary_cross_entropy")
binary_cross_entropy_with_logits = _warning("binary_cross_entropy_with_logits")
kl_div = _warning("kl_div")
poisson_nll_loss = _warning("poisson_nll_loss")
hinge_embedding_loss = _warning("hinge_embedding_loss")
soft_margin_loss = _warning("soft_margin_loss")
multilabel_soft_margin_loss = _warning("multilabel_soft_margin_loss")
cosine_embedding_loss = _warning("cosine_embedding_loss")
margin_ranking_loss = _warning("margin_ranking_loss")
multi_margin_loss = _warning("multi_margin_loss")
triplet_margin_loss = _warning("triplet_margin_loss")


def _reduce(loss: Tensor, reduction: str) -> Tensor:
    get_enum(reduction)
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


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
    distance = distance_function if distance_function is not None else raw("pairwise_distance")
    to_positive = distance(anchor, positive)
    to_negative = distance(anchor, negative)
    if swap:
        to_negative = taeda.minimum(to_negative, distance(positive, negative))
    return _reduce((margin + to_positive - to_negative).clamp(min=0), reduction)
