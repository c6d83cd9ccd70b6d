"""Losses. ``reduction`` is "mean", "sum" or "none"."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn._reduction import legacy_get_string

from .distance import PairwiseDistance
from .linear import Linear
from .module import Module

__all__ = [
    "L1Loss",
    "NLLLoss",
    "NLLLoss2d",
    "PoissonNLLLoss",
    "GaussianNLLLoss",
    "KLDivLoss",
    "MSELoss",
    "BCELoss",
    "BCEWithLogitsLoss",
    "HingeEmbeddingLoss",
    "MultiLabelMarginLoss",
    "SmoothL1Loss",
    "HuberLoss",
    "SoftMarginLoss",
    "CrossEntropyLoss",
    "LinearCrossEntropyLoss",
    "MultiLabelSoftMarginLoss",
    "CosineEmbeddingLoss",
    "MarginRankingLoss",
    "MultiMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "CTCLoss",
]


class _Loss(Module):
    reduction: str

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        if size_average is not None or reduce is not None:
            try:
                reduction = legacy_get_string(size_average, reduce)
            except RuntimeError as error:  # of a tensor: input and target
                kind = type(self).__name__
                plain = RuntimeError(error.args[0].partition("\n")[0])
                plain.add_note(
                    f"Fix: nn.{kind}(...) constructs the loss, which then takes input and target: "
                    f"nn.{kind}()(input, target), or the function of nn.functional"
                )
                raise plain from None
        self.reduction = reduction


class _WeightedLoss(_Loss):
    """A loss with a buffer of weights."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.weight: Tensor | None


class L1Loss(_Loss):
    """The mean absolute error.

        loss = |x - y|

    Args:
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input, target: ``(*)``, of the same shape.
        output: a number, or ``(*)`` with reduction "none".

    Its derivative is the sign, 0 where x is y.

    >>> nn.L1Loss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(1.)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class NLLLoss(_WeightedLoss):
    """The negative logarithm of a probability, of log-probabilities.

        loss = -weight[y] x[y]

    Args:
        weight: ``(C,)``, a factor for each class.
        ignore_index: a target that does not count.
        reduction: "mean" (over targets that count, weighted), "sum", or "none".
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input: log-probabilities ``(N, C)``, ``(N, C, d1, ...)`` with a class for each pixel, or
            ``(C,)``.
        target: class indices ``(N)``, ``(N, d1, ...)`` or ``()``, int64, from 0 to C - 1.
        output: a number, or the target's shape with reduction "none".

    With `LogSoftmax` before it, it is `CrossEntropyLoss`.

    >>> x = torch.tensor([[0.5, 0.5], [0.25, 0.75]]).log()
    >>> nn.NLLLoss(reduction="none")(x, torch.tensor([0, 1]))
    tensor([0.6931, 0.2877])
    """

    __constants__ = ["ignore_index", "reduction"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class NLLLoss2d(NLLLoss):
    """`NLLLoss` under its old name for images; deprecated.

    Args:
        weight, ignore_index, reduction, size_average, reduce: those of `NLLLoss`.

    Shape:
        input: ``(N, C, H, W)``, log-probabilities.
        target: ``(N, H, W)``, class indices.
        output: a number, or ``(N, H, W)`` with reduction "none".
    """


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of counts.

        loss = exp(x) - y x, or x - y log(x + eps)

    Args:
        log_input: whether x is the logarithm of the rate (the first form) or the rate.
        full: whether Stirling's approximation of ``log(y!)`` is added where y > 1.
        eps: added to a rate before its logarithm.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input, target: ``(*)``, of the same shape.
        output: a number, or ``(*)`` with reduction "none".

    >>> nn.PoissonNLLLoss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(0.5537)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of a normal distribution with a predicted variance.

        loss = (log(max(var, eps)) + (x - y)^2 / max(var, eps)) / 2

    Args:
        full: whether ``log(2 pi) / 2`` is added.
        eps: the smallest variance.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.

    Shape:
        input, target: ``(*)``; var: the same, or broadcast from 1 in the last dimension, not
            negative.
        output: a number, or ``(*)`` with reduction "none".

    >>> nn.GaussianNLLLoss()(torch.tensor([1.]), torch.tensor([2.]), torch.tensor([1.]))
    tensor(0.5000)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(
            input, target, var, full=self.full, eps=self.eps, reduction=self.reduction
        )


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence of x from the target y.

        loss = y (log(y) - x),  x a log-probability

    Args:
        reduction: "batchmean" divides the sum by the batch, which is the divergence; "mean" divides
            by all elements; "sum"; or "none".
        log_target: whether y is a log-probability too: ``exp(y) (y - x)``.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input, target: ``(*)``, of the same shape.
        output: a number, or ``(*)`` with reduction "none".

    Elements with y = 0 add 0.

    >>> x, y = torch.tensor([[0.5, 0.5]]), torch.tensor([[0.25, 0.75]])
    >>> nn.KLDivLoss(reduction="batchmean")(x.log(), y)
    tensor(0.1308)
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class MSELoss(_Loss):
    """The mean squared error.

        loss = (x - y)^2

    Args:
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input, target: ``(*)``, of the same shape.
        output: a number, or ``(*)`` with reduction "none".

    Shapes that differ broadcast, with a warning: ``(n, 1)`` and ``(n,)`` give ``(n, n)``.

    >>> nn.MSELoss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(2.)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities.

        loss = -weight (y log(x) + (1 - y) log(1 - x))

    Args:
        weight: a factor for each element, broadcast.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input: ``(*)``, from 0 to 1; target: the same shape, usually 0 or 1.
        output: a number, or ``(*)`` with reduction "none".

    Logarithms are cut off at -100. On logits use `BCEWithLogitsLoss`, which is more exact.

    >>> nn.BCELoss(reduction="none")(torch.tensor([0.5, 0.9]), torch.tensor([1., 1.]))
    tensor([0.6931, 0.1054])
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits, without overflow.

        loss = -weight (pos_weight y log(sigmoid(x)) + (1 - y) log(1 - sigmoid(x)))

    Args:
        weight: a factor for each element, broadcast.
        pos_weight: a factor for positives, ``(C,)``: negatives over positives balances a class.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input: logits ``(*)``; target: the same shape, from 0 to 1, floating point.
        output: a number, or ``(*)`` with reduction "none".

    For classes that do not exclude each other, and for yes or no.

    >>> nn.BCEWithLogitsLoss()(torch.tensor([0., 100.]), torch.tensor([1., 1.]))
    tensor(0.3466)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)
        self.weight: Tensor | None
        self.pos_weight: Tensor | None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class HingeEmbeddingLoss(_Loss):
    """Small distances for similar pairs, large ones for others.

        loss = x where y = 1, max(0, margin - x) where y = -1

    Args:
        margin: from which distance on a dissimilar pair costs nothing.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input, target: ``(*)``, x a distance, y 1 or -1.
        output: a number, or ``(*)`` with reduction "none".

    >>> nn.HingeEmbeddingLoss()(torch.tensor([0.2, 0.4]), torch.tensor([1., -1.]))
    tensor(0.4000)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """A margin between every class of a sample and every other one.

        loss = sum over targets j and others i of max(0, 1 - (x_j - x_i)) / C

    Args:
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input: ``(N, C)`` or ``(C,)``.
        target: the same shape, int64: class indices, ended by the first -1.
        output: a number, or ``(N)`` with reduction "none".

    >>> x = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> nn.MultiLabelMarginLoss()(x, torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squares near zero, absolute values elsewhere. arXiv 1504.08083

        loss = (x - y)^2 / (2 beta) where |x - y| < beta, else |x - y| - beta / 2

    Args:
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.
        beta: where the one becomes the other; 0 gives `L1Loss`.

    Shape:
        input, target: ``(*)``, of the same shape.
        output: a number, or ``(*)`` with reduction "none".

    `HuberLoss` with delta = beta is beta times this.

    >>> nn.SmoothL1Loss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(0.7500)
    """

    __constants__ = ["reduction"]

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squares near zero, a line elsewhere.

        loss = (x - y)^2 / 2 where |x - y| <= delta, else delta (|x - y| - delta / 2)

    Args:
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        delta: where the one becomes the other, positive.

    Shape:
        input, target: ``(*)``, of the same shape.
        output: a number, or ``(*)`` with reduction "none".

    >>> nn.HuberLoss()(torch.tensor([1., 2.]), torch.tensor([1., 4.]))
    tensor(0.7500)
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class SoftMarginLoss(_Loss):
    """Logistic loss of two classes.

        loss = log(1 + exp(-y x))

    Args:
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input, target: ``(*)``, y 1 or -1.
        output: a number, or ``(*)`` with reduction "none".

    >>> nn.SoftMarginLoss()(torch.tensor([2., -1.]), torch.tensor([1., 1.]))
    tensor(0.7201)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """The loss of classifiers: the negative logarithm of the right class's probability.

        loss = -weight[y] log(softmax(x)[y])

    Args:
        weight: ``(C,)``, a factor for each class.
        ignore_index: a target that does not count.
        reduction: "mean" (over targets that count, weighted), "sum", or "none".
        label_smoothing: from 0 to 1, how much of the target is spread evenly over the classes.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input: logits ``(N, C)``, ``(N, C, d1, ...)`` with a class for each pixel, or ``(C,)``.
        target: class indices ``(N)``, ``(N, d1, ...)`` or ``()``, int64, from 0 to C - 1;
            or probabilities of the input's shape.
        output: a number, or the target's shape with reduction "none".

    x are logits: there is no softmax before this loss. With probabilities y as target the loss is
    ``-sum_c weight[c] y[c] log(softmax(x)[c])``.

    >>> x = torch.tensor([[2., 0., 0.], [0., 0., 0.]], requires_grad=True)
    >>> loss = nn.CrossEntropyLoss()(x, torch.tensor([0, 2]))
    >>> loss
    tensor(0.6691, grad_fn=<NllLossBackward0>)
    >>> loss.backward()
    >>> x.grad[1]
    tensor([ 0.1667,  0.1667, -0.3333])
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """`BCEWithLogitsLoss` of each class, averaged over the classes.

        loss = -mean over c of weight_c (y_c log(sigmoid(x_c)) + (1 - y_c) log(sigmoid(-x_c)))

    Args:
        weight: ``(C,)``, a factor for each class.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input: logits ``(N, C)``; target: the same shape, 0 or 1.
        output: a number, or ``(N)`` with reduction "none".

    >>> nn.MultiLabelSoftMarginLoss()(torch.tensor([[2., -1.]]), torch.tensor([[1., 0.]]))
    tensor(0.2201)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(
            input, target, weight=self.weight, reduction=self.reduction
        )


class CosineEmbeddingLoss(_Loss):
    """The angle of pairs: small for similar ones.

        loss = 1 - cos(x1, x2) where y = 1, max(0, cos(x1, x2) - margin) where y = -1

    Args:
        margin: the cosine up to which a dissimilar pair costs nothing, from -1 to 1.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input1, input2: ``(N, D)`` or ``(D,)``; target: ``(N)`` or ``()``, 1 or -1.
        output: a number, or ``(N)`` with reduction "none".

    >>> a, b = torch.tensor([[1., 0.]]), torch.tensor([[1., 1.]])
    >>> nn.CosineEmbeddingLoss()(a, b, torch.tensor([1.]))
    tensor(0.2929)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MarginRankingLoss(_Loss):
    """Whether x1 ranks above x2 (y = 1) or below (y = -1).

        loss = max(0, -y (x1 - x2) + margin)

    Args:
        margin: by how much it is to rank.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input1, input2, target: ``(N)`` or ``()``.
        output: a number, or ``(N)`` with reduction "none".

    >>> nn.MarginRankingLoss()(torch.tensor([1.]), torch.tensor([3.]), torch.tensor([1.]))
    tensor(2.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(
            input1, input2, target, margin=self.margin, reduction=self.reduction
        )


class MultiMarginLoss(_WeightedLoss):
    """A margin between the right class and every other one.

        loss = sum over i != y of weight[y] max(0, margin - x[y] + x[i])^p / C

    Args:
        p: 1 or 2.
        margin: by how much the right class is to win.
        weight: ``(C,)``, a factor for each class.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        input: ``(N, C)`` or ``(C,)``.
        target: ``(N)`` or ``()``, int64.
        output: a number, or ``(N)`` with reduction "none".

    >>> nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.8]]), torch.tensor([2]))
    tensor(0.2333)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError(
                "MultiMarginLoss: expected weight to be None or 1D tensor, "
                f"got {weight.dim()}D instead"
            )
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input,
            target,
            p=self.p,
            margin=self.margin,
            weight=self.weight,
            reduction=self.reduction,
        )


class TripletMarginLoss(_Loss):
    """An anchor is to be nearer to a positive than to a negative.

        loss = max(0, d(a, p) - d(a, n) + margin),  d(x, y) = ||x - y + eps||_p

    Args:
        margin: by how much.
        p: the order of the norm.
        eps: keeps the distance's derivative finite.
        swap: also takes the distance from positive to negative, if that is less (Balntas et al.
            2016).
        reduction: "mean" of all elements, "sum", or "none": the loss of each.
        size_average, reduce: deprecated; use ``reduction``.

    Shape:
        anchor, positive, negative: ``(N, D)`` or ``(D,)``.
        output: a number, or ``(N)`` with reduction "none".

    >>> a, p, n = torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([[3., 4.]])
    >>> nn.TripletMarginLoss(margin=5.0)(a, p, n)
    tensor(1.4142)
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with any distance.

        loss = max(0, d(a, p) - d(a, n) + margin)

    Args:
        distance_function: d, of two tensors; None: `PairwiseDistance`.
        margin: by how much.
        swap: also takes the distance from positive to negative, if that is less.
        reduction: "mean" of all elements, "sum", or "none": the loss of each.

    Shape:
        anchor, positive, negative: ``(N, *)``, whatever the distance takes.
        output: a number, or ``(N)`` with reduction "none".

    >>> a, p, n = torch.zeros(1, 2), torch.ones(1, 2), torch.tensor([[3., 4.]])
    >>> distance = lambda x, y: (x - y).abs().sum(1)
    >>> nn.TripletMarginWithDistanceLoss(distance_function=distance)(a, p, n)
    tensor(0.)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average=None, reduce=None, reduction=reduction)
        if margin <= 0:
            raise ValueError(
                "TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                f"got {margin} instead"
            )
        self.distance_function: Any = (
            distance_function if distance_function is not None else PairwiseDistance()
        )
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification: labels without an alignment (Graves et al. 2006).

    The negative logarithm of the probability that the sequence, with blanks and repetitions taken
    out, is the target: a sum over all alignments, by dynamic programming.

    Args:
        blank: the class that stands for nothing.
        reduction: "mean" (each divided by its target's length, then averaged), "sum" or "none".
        zero_infinity: whether losses of targets that cannot be aligned count 0 instead of infinity.

    Shape:
        log_probs: ``(T, N, C)`` or ``(T, C)``, of log_softmax.
        targets: ``(N, S)`` padded, or all one after the other; int64 without blanks.
        input_lengths, target_lengths: ``(N)``.
        output: a number, or ``(N)`` with reduction "none".

    >>> log_probs = torch.full((3, 1, 2), 0.5).log()
    >>> nn.CTCLoss(reduction="sum")(log_probs, torch.tensor([[1]]), (3,), (1,)).exp()
    tensor(1.3333)
    """

    __constants__ = ["blank", "reduction"]

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """CrossEntropyLoss of a linear layer of its own, (N, F) to (N, C, *out_features).

    Args:
        in_features: F, the input's last size.
        num_classes: C, how many classes a target chooses from.
        out_features: sizes beside C of what one row has logits for, as of several heads.
        bias: whether the linear layer adds one.
        device, dtype: of its parameters.
        reduction, weight, ignore_index, label_smoothing: as CrossEntropyLoss has them.
        options: a ``LinearCrossEntropyOptions``: the logits are made a chunk of rows at a time, so
            that all of them are never in memory at once.

    >>> import taeda as torch
    >>> loss = torch.nn.LinearCrossEntropyLoss(8, 5)
    >>> loss(torch.randn(3, 8), torch.tensor([0, 4, 2])).shape
    torch.Size([])
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(
                f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}"
            )
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(
                f"expected label_smoothing to be in range [0, 1], got {label_smoothing}"
            )
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features = num_classes, out_features
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing
        rows = prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias, device, dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        sizes = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape(*sizes, self.linear.in_features),
            target,
            linear_bias=None if bias is None else bias.reshape(sizes),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        shown = {
            "in_features": self.linear.in_features,
            "num_classes": self.num_classes,
            "out_features": self.out_features,
            "bias": self.linear.bias is not None,
            "reduction": self.reduction,
            "ignore_index": self.ignore_index,
            "label_smoothing": self.label_smoothing,
            "options": self.options,
        }
        return ", ".join(f"{name}={value}" for name, value in shown.items())
