"""Losses: the warnings around those of the table, and three that are not there."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._arguments import require_bool, require_tensors
from taeda.nn._reduction import get_enum, legacy_get_string

from .raw import raw

# Losses of two tensors of one size: another size broadcasts, which is seldom meant.
_SAME_SIZE = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


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

    loss.__doc__ = _described(function.__doc__ or "")
    return loss


# What arguments mean; of several texts the first whose condition is among the loss's arguments.
_ARGUMENTS = {
    "input": {
        "ignore_index": "scores, or for nll_loss logarithms of probabilities: `(n, c)`, `(c)` or "
        "`(n, c, ...)`.",
        "pos_weight": "logits: scores before a sigmoid.",
        "log_target": "logarithms of the model's probabilities.",
        "": "what the model says.",
    },
    "target": {
        "ignore_index": "the class of each sample from 0 to c - 1: int64 of the input's shape "
        "without c.",
        "pos_weight": "from 0 to 1, of the input's shape.",
        "log_target": "probabilities, or their logarithms with `log_target`.",
        "": "what it should say.",
    },
    "weight": {
        "ignore_index": "a factor for each class, `(c)`; 'mean' divides by their sum.",
        "": "a factor for each element, of a shape that broadcasts, or for each class.",
    },
    "reduction": {
        "log_target": "'batchmean' divides the sum by the batch, as the definition does; 'mean' "
        "by the number of elements; 'sum'; 'none'.",
        "": "'mean' and 'sum' give one number, 'none' the loss of each element.",
    },
    "size_average": {"": "old; with `reduce` it chose what `reduction` chooses."},
    "reduce": {"": "old, as `size_average`."},
    "ignore_index": {"": "the target of samples that do not count."},
    "label_smoothing": {"": "the share of the target, from 0 to 1, that goes to all classes."},
    "pos_weight": {"": "a factor for positive targets, of a shape that broadcasts."},
    "log_target": {"": "whether the target is given as logarithms."},
    "margin": {"": "by how much the right answer is to be ahead."},
    "beta": {"": "where the loss turns from a square into a line."},
    "delta": {"": "where the loss turns from a square into a line."},
    "eps": {"": "keeps divisions and logarithms finite."},
}


def _meaning(argument: str, taken: list[str]) -> str:
    texts = _ARGUMENTS[argument]
    return next(text for condition, text in texts.items() if not condition or condition in taken)


def _described(doc: str) -> str:
    """The table's docstring with a line for each argument whose meaning is known."""
    head, _, text = doc.partition("\n\n")
    first, mark, example = text.partition("\n>>>")
    taken = re.findall(r"(\w+): ", head.partition("(")[2])
    lines = [f"    {name}: {_meaning(name, taken)}" for name in taken if name in _ARGUMENTS]
    return "\n".join([head, "", first, "", "Args:", *lines, "", f"{mark}{example}".lstrip("\n")])


# Every function of the table with a `reduction` is a loss.
_LOSSES = {
    name: _warning(name)
    for name, function in _C._by_owner["nn.functional"].items()
    if "reduction: str" in function.__doc__.partition("\n")[0]
}
globals().update(_LOSSES)

__all__ = [
    *_LOSSES,
    "ctc_loss",
    "multilabel_margin_loss",
    "triplet_margin_with_distance_loss",
]


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
    """``sum_ij max(0, 1 - (x[y_j] - x[i])) / c`` over targets j (up to the first -1), others i.

    >>> scores = torch.tensor([[0.1, 0.2, 0.4, 0.8]])
    >>> torch.nn.functional.multilabel_margin_loss(scores, torch.tensor([[3, 0, -1, 1]]))
    tensor(0.8500)
    """
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    get_enum(reduction)
    require_tensors("multilabel_margin_loss", input=input, target=target)
    converted = input.is_cuda or taeda.is_autocast_enabled(input.device.type)
    if input.dtype not in (taeda.float32, taeda.float64) and not converted:
        raise NotImplementedError(
            f'"multilabel_margin_loss_forward_out_frame" not implemented for {input.dtype}'
        )
    if input.dim() > 2 or 0 in input.shape[max(input.dim() - 1, 0) :]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
            f"{list(input.shape)}"
        )
    fits = input.shape == target.shape
    if input.dim() < 2:  # a number is a vector of one
        fits = target.dim() < 2 and input.numel() == target.numel()
    if not fits:
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    if target.dtype != taeda.int64 and not target.is_complex():
        raise RuntimeError(
            f"multilabel_margin_loss: expected target of scalar type Long but found {target.dtype}"
        )
    single = input.dim() < 2
    x = input.reshape(1, -1) if single else input
    y = target.reshape(1, -1) if single else target
    valid = (y < 0).to(taeda.int64).cumsum(1) == 0  # targets end at the first -1
    index = y.clamp(min=0)
    found = "argument #2 'target' is out of range: {} is not one of {} classes"
    _C._check_indices(index, x.size(1), f"multilabel_margin_loss(): {found}")
    is_target = taeda.zeros_like(x).scatter_add_(1, index, valid.to(x.dtype)) > 0
    gap = 1 - x.gather(1, index).unsqueeze(2) + x.unsqueeze(1)  # n, targets, classes
    used = valid.unsqueeze(2) & ~is_target.unsqueeze(1)
    loss = taeda.where(used, gap.relu(), taeda.zeros_like(gap)).sum((1, 2)) / x.size(1)
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
    """`triplet_margin_loss` with any distance: ``max(0, d(anchor, positive) - d(anchor, negative)
    + margin)``.

    Args:
        anchor, positive, negative: rows of the same sizes.
        distance_function: of two tensors, to a distance for each row; None:
            `pairwise_distance`.
        margin: by how much the negative is to be farther.
        swap: take the smaller of the distances from anchor and positive to the negative
            (Balntas et al. 2016).
        reduction: ``"mean"``, ``"sum"`` or ``"none"``.

    >>> d = torch.nn.PairwiseDistance(p=1)
    >>> x, near, far = torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1, 2) * 5
    >>> torch.nn.functional.triplet_margin_with_distance_loss(x, near, far, distance_function=d)
    tensor(0.)
    """
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


_IMPOSSIBLE = -1e30  # the logarithm of no probability at all, of which differences are finite


def _label_rows(targets: Tensor, lengths: Tensor) -> Tensor:
    """Labels as one row a sequence, padded with 0; from rows or from one concatenation."""
    if targets.dim() == 2:
        return targets
    counts = lengths.tolist()
    total = sum(counts)
    if len(targets) != total:
        raise RuntimeError(
            f"ctc_loss: expected targets to have size {total} at dimension 0, the sum of "
            f"target_lengths, but got size {len(targets)}"
        )
    rows = taeda.zeros(len(lengths), max(1, int(lengths.max())), dtype=targets.dtype)
    start = 0
    for row, length in zip(rows, counts):
        row[:length] = targets[start : start + length]
        start += length
    return rows


def _check_ctc(
    log_probs: Tensor, inputs: Tensor, labels: Tensor, lengths: Tensor, blank: int
) -> None:
    frames, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if len(inputs) != batch or len(lengths) != batch:
        raise RuntimeError(
            f"input_lengths and target_lengths must be of size {batch}, the batch's, got "
            f"{len(inputs)} and {len(lengths)}"
        )
    from taeda._functorch._levels import is_batchedtensor

    if is_batchedtensor(inputs) or is_batchedtensor(lengths):
        return  # of vmap's samples: how long each is must not decide what runs
    if int(inputs.max()) > frames or int(inputs.min()) < 0:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {frames}, but got value "
            f"{int(inputs.max())}"
        )
    if int(lengths.max()) > labels.shape[1] or int(lengths.min()) < 0:
        raise RuntimeError(
            f"Expected tensor to have size at least {int(lengths.max())} at dimension 1, but got "
            f"size {tuple(labels.shape)} for targets"
        )


def _require_lengths(name: str, lengths: Any) -> None:
    """TypeError for a list with elements that are no integers of 64 bits."""
    for length in lengths if isinstance(lengths, (list, tuple)) else ():
        is_int = hasattr(length, "__index__") or hasattr(length, "__torch_function__")
        if not is_int or (isinstance(length, int) and not -(1 << 63) <= length < 1 << 63):
            raise TypeError(
                f"ctc_loss(): argument '{name}' must be a tuple of ints, but got {length!r} in it"
            )


def _ctc_of_each(
    log_probs: Tensor, labels: Tensor, inputs: Tensor, lengths: Tensor, blank: int
) -> Tensor:
    """-log of the probability of all alignments, by the forward recursion over frames."""
    frames, batch, classes = log_probs.shape
    # labels with blanks between and around them
    extended = log_probs.new_full((batch, 2 * labels.shape[1] + 1), blank, dtype=taeda.int64)
    extended[:, 1::2] = labels
    found = "ctc_loss(): target {} is out of range: there are {} classes"
    _C._check_indices(extended, classes, found)
    # a label may follow another one without the blank between them
    may_skip = (extended[:, 2:] != blank) & (extended[:, 2:] != extended[:, :-2])
    none = log_probs.new_full((batch, 1), _IMPOSSIBLE)
    reached = none.expand(batch, extended.shape[1])
    reached = taeda.cat([none + (0 - _IMPOSSIBLE), reached[:, 1:]], 1)
    for frame in range(frames):
        said = log_probs[frame].gather(1, extended).clamp_min(_IMPOSSIBLE)
        if frame == 0:
            start = taeda.arange(extended.shape[1], device=log_probs.device) < 2
            ways = taeda.where(start, 0.0, _IMPOSSIBLE).to(log_probs.dtype).expand_as(said)
        else:
            one = taeda.cat([none, reached[:, :-1]], 1)
            two = taeda.where(may_skip, reached[:, :-2], _IMPOSSIBLE)
            two = taeda.cat([none, none, two], 1)[:, : extended.shape[1]]
            ways = taeda.stack([reached, one, two]).logsumexp(0)
        reached = taeda.where(
            (frame < inputs).unsqueeze(1), (ways + said).clamp_min(_IMPOSSIBLE), reached
        )
    last = reached.gather(1, (2 * lengths).unsqueeze(1)).squeeze(1)
    before = reached.gather(1, (2 * lengths - 1).clamp_min(0).unsqueeze(1)).squeeze(1)
    return -taeda.where(lengths > 0, taeda.logaddexp(last, before), last)


def _ctc_losses(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int,
    zero_infinity: bool,
) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
    """The loss of each sequence; and its labels as rows, its number of frames and of labels."""
    if log_probs.dtype not in (taeda.float32, taeda.float64):
        raise NotImplementedError(f'"ctc_loss" not implemented for {log_probs.dtype}')
    if log_probs.dim() != 3:
        raise RuntimeError(
            f"ctc_loss: log_probs must have 2 or 3 dimensions, got {log_probs.dim()}"
        )
    for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        _require_lengths(name, given)
    inputs = taeda.as_tensor(input_lengths, device=log_probs.device).reshape(-1).long()
    lengths = taeda.as_tensor(target_lengths, device=log_probs.device).reshape(-1).long()
    labels = _label_rows(targets, lengths).long()
    _check_ctc(log_probs, inputs, labels, lengths, blank)
    losses = _ctc_of_each(log_probs, labels, inputs, lengths, blank)
    # a term of value 0 whose gradient is the softmax's part in that of the scores
    frames = taeda.arange(len(log_probs), device=log_probs.device)
    used = (frames.unsqueeze(1) < inputs).to(log_probs.dtype)
    norms = (log_probs.logsumexp(-1) * used).sum(0)
    losses = losses + (norms - norms.detach())
    impossible = losses.detach() > -_IMPOSSIBLE / 2
    losses = taeda.where(impossible, 0.0 if zero_infinity else float("inf"), losses)
    return losses, (labels, inputs, lengths)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification [Graves et al. 2006].

    log_probs (frames, batch, classes) or (frames, classes); targets (batch, labels), or all labels
    one after the other. "mean" divides each loss by its number of labels first. Where no alignment
    fits the loss is infinite, or 0 with zero_infinity. As in PyTorch the gradient is that of
    probabilities which log_softmax made of scores.

    >>> log_probs = torch.full((4, 1, 3), 1 / 3).log()  # four frames, three classes
    >>> torch.nn.functional.ctc_loss(log_probs, torch.tensor([[1, 2]]), [4], [2])
    tensor(0.8432)
    """
    get_enum(reduction)
    require_tensors("ctc_loss", log_probs=log_probs, targets=targets)
    require_bool("ctc_loss", "zero_infinity", zero_infinity)
    if log_probs.dim() == 0 or targets.dim() == 0:
        kind = RuntimeError if log_probs.dim() else IndexError
        raise kind(
            f"ctc_loss: expected log_probs of 2 or 3 dimensions and targets of 1 or 2, got "
            f"{log_probs.dim()} and {targets.dim()}"
        )
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    losses, (_, _, lengths) = _ctc_losses(
        log_probs, targets, input_lengths, target_lengths, blank, zero_infinity
    )
    if reduction == "mean":
        return (losses / lengths.clamp_min(1).to(losses.dtype)).mean()
    if reduction == "sum":
        return losses.sum()
    return losses.squeeze(0) if single else losses
