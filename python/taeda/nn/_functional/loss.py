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
    "triplet_margin_with_distance_loss",
]


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
    return raw("_triplet_loss_of_distances")(to_positive, to_negative, margin, reduction)


def _require_lengths(name: str, lengths: Any) -> None:
    """TypeError for a list with elements that are no integers of 64 bits."""
    for length in lengths if isinstance(lengths, (list, tuple)) else ():
        is_int = hasattr(length, "__index__") or hasattr(length, "__torch_function__")
        if not is_int or (isinstance(length, int) and not -(1 << 63) <= length < 1 << 63):
            raise TypeError(
                f"ctc_loss(): argument '{name}' must be a tuple of ints, but got {length!r} in it"
            )


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
    require_tensors("ctc_loss", log_probs=log_probs, targets=targets)
    require_bool("ctc_loss", "zero_infinity", zero_infinity)
    for name, given in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        _require_lengths(name, given)
    lengths = (taeda.as_tensor(given) for given in (input_lengths, target_lengths))
    word = ("none", "mean", "sum")[get_enum(reduction)]
    return raw("_ctc_loss_by_lengths")(log_probs, targets, *lengths, blank, word, zero_infinity)
