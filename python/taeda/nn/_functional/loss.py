"""Losses that are not operators of the table. Deprecated flags stand beside `reduction`."""

from __future__ import annotations

from collections.abc import Callable

import taeda
from taeda import Tensor
from taeda.nn._reduction import get_enum, legacy_get_string

from .raw import raw

__all__ = ["multilabel_margin_loss", "triplet_margin_with_distance_loss"]


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
