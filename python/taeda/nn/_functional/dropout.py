"""Dropout and its relatives."""

from __future__ import annotations

import math
import warnings
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._arguments import require_bool, require_tensors

from .raw import has, raw, raw_

__all__ = [
    "dropout",
    "alpha_dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]

# The fixed point that SELU keeps: -scale * alpha.
_ALPHA = 1.7580993408473766


def _check_p(p: float) -> None:
    if p < 0.0 or p > 1.0:
        error = ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        error.add_note("Fix: p is the share of elements that become 0, such as 0.5")
        raise error


def _noise(input: Tensor, p: float, whole_features: bool) -> Tensor:
    if whole_features:
        if input.dim() < 2:
            raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*input.shape[:2], *(1 for _ in input.shape[2:]))
        made = input.new_empty(shape)
    else:
        made = taeda.empty_like(input)
    # Samples of vmap that share the input have masks of their own.
    return taeda.bernoulli(made, 1 - p) if _C._vmap_level() else made.bernoulli_(1 - p)


def _composite(whole_features: bool, alpha: bool) -> Any:
    def apply(input: Tensor, p: float, train: bool, inplace: bool = False) -> Tensor:
        if p == 0 or not train or input.numel() == 0:
            return input
        shift: Any = 0
        if p == 1:
            factor: Any = taeda.zeros((), dtype=input.dtype, device=input.device)
        else:
            noise = _noise(input, p, whole_features)
            if alpha:
                a = 1.0 / math.sqrt((_ALPHA * _ALPHA * p + 1) * (1 - p))
                shift = (noise - 1).mul_(_ALPHA * a).add_(_ALPHA * a * p)
                factor = noise.mul_(a)
            else:
                factor = noise.div_(1 - p)
        if inplace:
            input.mul_(factor)
            return input.add_(shift) if alpha else input
        return input * factor + shift if alpha else input * factor

    return apply


def _function(name: str, whole_features: bool, alpha: bool) -> Any:
    if not has(name):
        return _composite(whole_features, alpha)
    function, function_ = raw(name), raw_(name)

    def apply(input: Tensor, p: float, train: bool, inplace: bool = False) -> Tensor:
        return (function_ if inplace else function)(input, p, train)

    return apply


_dropout = _function("dropout", whole_features=False, alpha=False)
_drop_features = _function("feature_dropout", whole_features=True, alpha=False)
_alpha_dropout = _function("alpha_dropout", whole_features=False, alpha=True)
_feature_alpha_dropout = _function("feature_alpha_dropout", whole_features=True, alpha=True)


def _feature_dropout(input: Tensor, p: float, train: bool, inplace: bool) -> Tensor:
    require_bool("feature_dropout", "train", train)
    return _drop_features(input, p, train, inplace)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes each element with probability ``p`` and multiplies the others by ``1 / (1 - p)``, so
    that the mean stays (Srivastava et al. 2014); outside of training the input itself.

    Args:
        p: the probability of a zero, from 0 to 1.
        training: whether to drop anything; a model's ``self.training``.
        inplace: write the result into ``input`` and return it.

    Shape: any; the result has the input's.

    >>> torch.nn.functional.dropout(torch.ones(3), training=False)
    tensor([1., 1., 1.])
    >>> sorted(set(torch.nn.functional.dropout(torch.ones(100), 0.75).tolist()))
    [0.0, 4.0]
    """
    _check_p(p)
    return _dropout(input, p, training, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean 0 and variance 1, for SELU networks.

    Args:
        p: the probability that an element takes the value that SELU has far below 0.
        training: whether anything is dropped.
        inplace: write the result into ``input`` and return it.

    >>> torch.nn.functional.alpha_dropout(torch.ones(2), p=0.5, training=False)
    tensor([1., 1.])
    """
    _check_p(p)
    require_tensors("alpha_dropout", input=input)
    require_bool("alpha_dropout", "train", training)
    return _alpha_dropout(input, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels: all of a channel's elements take the value that SELU has
    far below 0, or none do, and mean and variance stay (Klambauer, Unterthiner, Mayr and
    Hochreiter 2017).

    Args:
        p: the probability that a channel is dropped.
        training: whether anything is dropped.
        inplace: write the result into ``input`` and return it.

    Shape: ``(n, c, *)``; the result has the input's.

    >>> x = torch.nn.functional.feature_alpha_dropout(torch.ones(1, 4, 5), training=True)
    >>> bool((x == x[..., :1]).all())  # a channel's elements are equal
    True
    """
    _check_p(p)
    require_tensors("feature_alpha_dropout", input=input)
    require_bool("feature_alpha_dropout", "train", training)
    return _feature_alpha_dropout(input, p, training, inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of sequences: neighbours in a channel are alike, so that dropping
    single elements would tell the next layer little (Tompson et al. 2015).

    Args:
        p: the probability that a channel becomes 0; the others are divided by ``1 - p``.
        training: whether anything is dropped.
        inplace: write the result into ``input`` and return it.

    Shape: ``(n, c, l)`` or ``(c, l)``; the result has the input's.

    >>> x = torch.nn.functional.dropout1d(torch.ones(1, 2, 3), p=0.5)
    >>> bool(((x == 0) | (x == 2)).all())
    True
    """
    _check_p(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. "
            "Note that dropout1d exists to provide channel-wise dropout on inputs with 1 "
            "spatial dimension, a channel dimension, and an optional batch dimension "
            "(i.e. 2D or 3D inputs)."
        )
    if input.dim() == 3:
        return _feature_dropout(input, p, training, inplace)
    result = _feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Dropout of whole channels of images: neighbours in a channel are alike, so that dropping
    single elements would take away little (Tompson et al. 2015).

    Args:
        p: the probability that a channel is zeroed.
        training: whether to drop anything.
        inplace: write the result into ``input`` and return it.

    Shape: ``(n, c, h, w)`` or ``(c, h, w)``; the result has the input's.

    >>> y = torch.nn.functional.dropout2d(torch.ones(1, 8, 2, 2))
    >>> sorted(set(y.sum((2, 3)).flatten().tolist())) in ([0.0, 8.0], [0.0], [8.0])
    True
    """
    _check_p(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated "
            "and will result in an error in a future release. To retain the behavior "
            "and silence this warning, please use dropout instead. Note that dropout2d "
            "exists to provide channel-wise dropout on inputs with 2 spatial dimensions, "
            "a channel dimension, and an optional batch dimension (i.e. 3D or 4D inputs).",
            stacklevel=2,
        )
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise "
            "1D dropout behavior is desired - input is interpreted as shape (N, C, L), where C "
            "is the channel dim. This behavior will change in a future release to interpret the "
            "input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout behavior, please switch to using dropout1d instead.",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Zeroes whole channels of ``(n, c, d, h, w)`` or ``(c, d, h, w)``; the others grow by
    1 / (1 - p).

    >>> x = torch.nn.functional.dropout3d(torch.ones(1, 8, 2, 2, 2), p=0.5)
    >>> [channel in (0.0, 16.0) for channel in x.sum(dim=(2, 3, 4))[0].tolist()].count(True)
    8
    """
    _check_p(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated "
            "and will result in an error in a future release. To retain the behavior "
            "and silence this warning, please use dropout instead. Note that dropout3d "
            "exists to provide channel-wise dropout on inputs with 3 spatial dimensions, "
            "a channel dimension, and an optional batch dimension (i.e. 4D or 5D inputs).",
            stacklevel=2,
        )
    if input.dim() == 5:
        return _feature_dropout(input, p, training, inplace)
    result = _feature_dropout(input.unsqueeze(0), p, training, inplace)
    return input if inplace else result.squeeze(0)
