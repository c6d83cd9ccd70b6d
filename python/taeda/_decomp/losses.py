"""Losses and their gradients. Reductions are PyTorch's numbers: 0 none, 1 mean, 2 sum."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor

from .registry import new, of, reduce, wide


def _spread(g: Tensor, x: Tensor, reduction: int) -> Tensor:
    """The gradient of each element of a loss over `x`."""
    return g / x.numel() if reduction == 1 else g


@of("mse_loss")
@wide
def mse_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """(x - t)^2"""
    return reduce((x - target) ** 2, reduction)


@of("mse_loss_backward")
def mse_loss_backward(g: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    """2 (x - t) g"""
    scale = 2.0 / x.numel() if reduction == 1 else 2.0
    return scale * (x - target) * g


@of("l1_loss")
def l1_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """|x - t|"""
    return reduce((x - target).abs(), reduction)


@of("smooth_l1_loss")
@wide
def smooth_l1_loss(x: Tensor, target: Tensor, reduction: int = 1, beta: float = 1.0) -> Tensor:
    """d^2 / (2 beta) where d = |x - t| < beta, else d - beta / 2"""
    d = (x - target).abs()
    loss = d if beta == 0 else taeda.where(d < beta, 0.5 * d * d / beta, d - 0.5 * beta)
    return reduce(loss, reduction)


@of("smooth_l1_loss_backward")
def smooth_l1_loss_backward(
    g: Tensor, x: Tensor, target: Tensor, reduction: int, beta: float
) -> Tensor:
    """d / beta where |d| < beta, else sign(d); times g"""
    d = x - target
    g = _spread(g, x, reduction)
    inner = g * d / beta if beta else g * d
    return taeda.where(d.abs() < beta, inner, g * taeda.sign(d))


@of("huber_loss")
@wide
def huber_loss(x: Tensor, target: Tensor, reduction: int = 1, delta: float = 1.0) -> Tensor:
    """d^2 / 2 where d = |x - t| < delta, else delta (d - delta / 2)"""
    d = (x - target).abs()
    return reduce(taeda.where(d < delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction)


@of("huber_loss_backward")
def huber_loss_backward(g: Tensor, x: Tensor, target: Tensor, reduction: int, delta: float) -> Any:
    """clamp(x - t, -delta, delta) g"""
    return taeda.clamp(x - target, -delta, delta) * _spread(g, x, reduction)


@of("binary_cross_entropy")
@wide
def binary_cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """-(t log(x) + (1 - t) log(1 - x)), logarithms at least -100"""
    least = taeda.full((), -100.0, dtype=x.dtype, device=x.device)
    loss = (target - 1) * taeda.maximum(taeda.log1p(-x), least)
    loss = loss - target * taeda.maximum(taeda.log(x), least)
    return reduce(loss if weight is None else loss * weight, reduction)


@of("binary_cross_entropy_backward")
def binary_cross_entropy_backward(
    g: Tensor, x: Tensor, target: Tensor, weight: Tensor | None = None, reduction: int = 1
) -> Tensor:
    """g (x - t) / max(x (1 - x), 1e-12)"""
    result = g * (x - target) / taeda.clamp(x * (1 - x), min=1e-12)
    return _spread(result if weight is None else result * weight, x, reduction)


@of("binary_cross_entropy_with_logits")
@wide
def binary_cross_entropy_with_logits(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: int = 1,
) -> Tensor:
    """(1 - t) x - w log(sigmoid(x)), w = (pos_weight - 1) t + 1"""
    log_sigmoid = taeda.nn.functional.logsigmoid(x)
    if pos_weight is None:
        loss = (1 - target) * x - log_sigmoid
    else:
        loss = (1 - target) * x - ((pos_weight - 1) * target + 1) * log_sigmoid
    return reduce(loss if weight is None else loss * weight, reduction)


@of("soft_margin_loss")
@wide
def soft_margin_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """log(1 + exp(-t x))"""
    return reduce(taeda.log1p(taeda.exp(-x * target)), reduction)


@new(
    "soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> "
    "Tensor"
)
def soft_margin_loss_backward(g: Tensor, x: Tensor, target: Tensor, reduction: int) -> Tensor:
    """-t g sigmoid(-t x)"""
    return target * _spread(g, x, reduction) * (taeda.sigmoid(target * x) - 1)


# --- likelihood of classes ---


def _class_weights(x: Tensor, weight: Tensor) -> Tensor:
    """One weight for each class, to broadcast over the classes' dimension."""
    return weight if x.dim() < 2 else weight.reshape([1, -1, *[1] * (x.dim() - 2)])


def _nll(
    x: Tensor, target: Tensor, weight: Tensor | None, reduction: int, ignore_index: int
) -> tuple[Tensor, Tensor]:
    """-w[t] x[t], and the sum of the weights of the targets that count (0 where none is asked)."""
    dim = 0 if x.dim() < 2 else 1
    counts = target != ignore_index
    index = taeda.where(counts, target, 0).unsqueeze(dim)
    each = x if weight is None else x * _class_weights(x, weight)
    loss = taeda.where(counts, -taeda.gather(each, dim, index).squeeze(dim), 0)
    if reduction == 0 and x.dim() > 1:
        return loss, x.new_full((), 0.0)
    if weight is None:
        total = counts.sum().to(x)
    else:
        spread = _class_weights(x, weight).expand(x.shape)
        total = taeda.where(counts, taeda.gather(spread, dim, index).squeeze(dim), 0).sum()
    return (loss.sum() if reduction == 2 else loss.sum() / total), total


_NLL = "Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index"
_NLL_RESULTS = "(Tensor output, Tensor total_weight)"
for _name in ("nll_loss", "nll_loss2d"):
    new(f"{_name}_forward({_NLL}) -> {_NLL_RESULTS}")(_nll)


@new(
    "nll_loss2d(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "SymInt ignore_index=-100) -> Tensor"
)
def nll_loss2d(
    x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    """-w[t] x[t] of images"""
    return _nll(x, target, weight, reduction, ignore_index)[0]


def _nll_backward(
    g: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    reduction: int,
    ignore_index: int,
    total_weight: Tensor,
) -> Tensor:
    """-w[t] g at the targets that count"""
    dim = 0 if x.dim() < 2 else 1
    g = g / total_weight if reduction == 1 else g
    target = target.unsqueeze(dim)
    index = taeda.where(target != ignore_index, target, 0)
    hot = taeda.scatter(taeda.zeros_like(x), dim, index, -1.0)
    g = g.unsqueeze(dim) if x.dim() > g.dim() > 0 else g
    g = taeda.where(target != ignore_index, g, 0)
    return hot * g if weight is None else hot * g * _class_weights(x, weight)


for _name in ("nll_loss", "nll_loss2d"):
    new(f"{_name}_backward(Tensor grad_output, {_NLL}, Tensor total_weight) -> Tensor")(
        _nll_backward
    )


@new(
    "nll_loss_nd(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "SymInt ignore_index=-100) -> Tensor"
)
def nll_loss_nd(
    x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1, ignore_index: int = -100
) -> Tensor:
    """-w[t] x[t]"""
    return _nll(x, target, weight, reduction, ignore_index)[0]


@new(
    "cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, "
    "SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor"
)
def cross_entropy_loss(
    x: Tensor, target: Tensor, weight: Any = None, reduction: int = 1,
    ignore_index: int = -100, label_smoothing: float = 0.0,
) -> Tensor:  # fmt: skip
    """The negative log likelihood of classes, given what softmax is taken of."""
    return taeda.nn.functional.cross_entropy(
        x, target, weight, ignore_index=ignore_index, label_smoothing=label_smoothing,
        reduction=("none", "mean", "sum")[reduction],
    )  # fmt: skip


@new(
    "multilabel_margin_loss_forward(Tensor self, Tensor target, int reduction) -> "
    "(Tensor output, Tensor is_target)"
)
def multilabel_margin_loss_forward(x: Tensor, target: Tensor, reduction: int) -> tuple:
    """Over pairs of a target and another class, max(0, 1 - (x[t] - x[other])) / classes; and
    which classes are targets. Targets end at the first -1."""
    rows, labels = taeda.atleast_2d(x), taeda.atleast_2d(target)
    ends = (labels < 0).to(taeda.int64).cumsum(1)
    labels = taeda.where(ends > 0, -1, labels)
    classes = taeda.arange(rows.shape[1], device=x.device)
    is_target = (labels.unsqueeze(2) == classes).any(1)
    of_targets = taeda.gather(rows, 1, labels.clamp(min=0))
    margins = (1.0 - (of_targets.unsqueeze(2) - rows.unsqueeze(1))).clamp(min=0)
    kept = (labels >= 0).unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = taeda.where(kept, margins, 0).sum([1, 2]) / rows.shape[1]
    loss = reduce(loss, reduction) if x.dim() > 1 else loss.sum()
    return loss, is_target.to(x.dtype).reshape(target.shape)


@new("multilabel_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
def multilabel_margin_loss(x: Tensor, target: Tensor, reduction: int = 1) -> Tensor:
    """The first result of `multilabel_margin_loss_forward`."""
    return multilabel_margin_loss_forward(x, target, reduction)[0]
