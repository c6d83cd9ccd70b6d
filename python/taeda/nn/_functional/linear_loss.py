"""Cross entropy of a linear layer's outputs."""

from __future__ import annotations

import warnings
from typing import Any

import taeda
from taeda import _C, Tensor

from .raw import raw

__all__ = ["linear_cross_entropy"]


def _is_transformed(*tensors: Tensor | None) -> bool:
    """Whether one is batched or has a tangent: for these chunks have no rules."""
    given = [x for x in tensors if x is not None]
    return any(_C._batch_level(x) or _C._tangents(x) for x in given)


def _check_sizes(x: Tensor, w: Tensor, b: Tensor | None) -> None:
    """RuntimeError where the sizes do not go together."""
    if not 1 <= x.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {x.dim()}")
    if w.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {w.dim()}")
    if x.shape[-1] != w.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {x.shape[-1]} and {w.shape[-1]}, respectively"
        )
    if b is not None and b.shape != w.shape[:-1]:
        raise RuntimeError(
            f"expected linear_bias shape {tuple(w.shape[:-1])}, got {tuple(b.shape)}"
        )
    if w.dim() > 2 and x.dim() == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(w.shape)} requires batched "
            f"input, (N, {x.shape[-1]}), got unbatched input with shape {tuple(x.shape)}"
        )


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target, ...)``.

    `input` is (F) or (N, F), `linear_weight` (C, F), or (C, d1, ..., F) for a target
    (N, d1, ...); `linear_bias` has the sizes of `linear_weight` but the last. With `options`, and
    indices as a target, the logits are made for a chunk of rows at a time and gradients with them:
    no second derivatives, and one backward.

    >>> x, w = torch.randn(6, 4), torch.randn(9, 4)
    >>> torch.nn.functional.linear_cross_entropy(x, w, torch.tensor([0, 8, 3, 3, 1, 2])).shape
    torch.Size([])
    """
    _check_sizes(input, linear_weight, linear_bias)
    inner = linear_weight.shape[1:-1]
    sizes = (*input.shape[:-1], *linear_weight.shape[:-1])
    if target.shape == sizes and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        known = reduction in ("mean", "sum", "none")
        if known and label_smoothing == 0.0 and target.dtype == taeda.int64 and not inner:
            args = (input, linear_weight, target, linear_bias, weight, reduction, ignored, options)
            if not _is_transformed(*args[:5]):
                from .chunked_loss import chunked

                return chunked(*args)
        else:
            warnings.warn(
                "linear_cross_entropy: ``options`` ignored; chunked path needs reduction in "
                "{'mean','sum','none'}, label_smoothing == 0, target.dtype == int64, out_features "
                f"== (). Got reduction={reduction!r}, label_smoothing={label_smoothing}, "
                f"target.dtype={target.dtype}, out_features={tuple(inner)}.",
                stacklevel=2,
            )
    return raw("_linear_cross_entropy")(
        input, linear_weight, target, linear_bias=linear_bias, weight=weight,
        reduction=reduction, ignore_index=ignored, label_smoothing=label_smoothing,
    )  # fmt: skip
