"""Cross entropy of a linear layer's outputs, a chunk of rows at a time.

With N rows, F features and C classes the logits are (N, C); where C is a vocabulary they are larger
than everything else. Here the logits of one chunk are held at a time, and gradients, which have the
sizes of the arguments, are kept in their place.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from math import ceil
from typing import Any

import taeda
from taeda import Tensor
from taeda.autograd import Function

__all__ = ["LinearCrossEntropyOptions", "chunked"]

_POLICIES = ("auto", "accurate", "balanced", "compact")
_HALF = (taeda.float16, taeda.bfloat16)
_FLOATS = (*_HALF, taeda.float32, taeda.float64)


def _divisor_of(method: str) -> int | None:
    """N of "aspect_ratio:N"; None for another text."""
    name, colon, factor = method.partition(":")
    factor = factor if colon else "1"
    return int(factor) if name == "aspect_ratio" and factor.isdigit() and int(factor) > 0 else None


@dataclasses.dataclass(slots=True, frozen=True)
class LinearCrossEntropyOptions:
    """How `linear_cross_entropy` goes through the rows in chunks.

    A chunk has `batch_chunk_size` rows (all without one), or as many as `chunking_method` says:
    "aspect_ratio:N" makes the chunk's logits an N-th of the input's size, up to a power of two.
    Sums run in `acc_dtype`, for half precisions float32; `acc_policy` is checked and changes
    nothing here, since products of half precision accumulate in float32 in any case. Backward
    scales the gradients that forward has made, in place unless `allow_retain_graph`.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        size, method = self.batch_chunk_size, self.chunking_method
        if self.acc_policy not in _POLICIES:
            raise ValueError(f"invalid acc_policy: {self.acc_policy!r}")
        if method not in (None, "auto") and _divisor_of(str(method)) is None:
            raise ValueError(f"invalid chunking_method: {method!r}")
        if size is not None and not (isinstance(size, int) and size > 0):
            raise ValueError(f"batch_chunk_size must be positive int or None, got {size!r}")
        if self.acc_dtype is not None and self.acc_dtype not in _FLOATS:
            raise ValueError(f"acc_dtype must be None or one of {_FLOATS}, got {self.acc_dtype!r}")

    def rows_of_chunk(self, rows: int, features: int, classes: int, dtype: Any) -> int:
        """How many of `rows` make a chunk; ValueError where size and method disagree."""
        size, method = self.batch_chunk_size, self.chunking_method
        if method == "auto":
            default = "aspect_ratio" if dtype in _HALF else "aspect_ratio:2"
            method = default if size is None else None
        if method is None:
            return max(1, min(size or rows, rows))
        wanted = max(1, ceil(rows / ceil(classes / max(features, 1))))
        power = 1 << (wanted - 1).bit_length()
        chosen = max(1, min(power // (_divisor_of(method) or 1), rows))
        if size not in (None, chosen):
            raise ValueError(
                f"batch_chunk_size (={size}) and chunking_method ('{method}') give different chunk "
                f"sizes ({size} vs {chosen}); pass only one."
            )
        return chosen

    def dtype_of_sums(self, dtype: Any) -> Any:
        """acc_dtype; RuntimeError for one that does not go with arguments of `dtype`."""
        chosen = self.acc_dtype
        if chosen is None:
            chosen = taeda.float32 if self.acc_policy == "auto" and dtype in _HALF else dtype
        if chosen not in _FLOATS:
            raise ValueError(f"acc_dtype must be None or one of {_FLOATS}, got {chosen}")
        if chosen != dtype and not (dtype in _HALF and chosen == taeda.float32):
            raise RuntimeError(
                "linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but "
                f"got {chosen} acc_dtype and {dtype} inputs."
            )
        return chosen


class _Rows:
    """The arguments of a chunked call, and the loss and gradient of each chunk's logits."""

    def __init__(self, x: Tensor, w: Tensor, b: Tensor | None, target: Tensor, scale: Tensor,
                 size: int, dtype: Any):  # fmt: skip
        self.x, self.target, self.scale, self.size, self.dtype = x, target, scale, size, dtype
        self.w = w.to(dtype)
        self.b = None if b is None else b.to(dtype)

    def chunks(self) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """(rows, x of them, their log probabilities)."""
        functional: Any = taeda.nn.functional
        for start in range(0, len(self.x), self.size):
            rows = slice(start, start + self.size)
            x = self.x[rows].to(self.dtype)
            yield rows, x, functional.linear(x, self.w, self.b).log_softmax(1)

    def losses(self, rows: slice, log_p: Tensor) -> Tensor:
        """-scale log p of the targets."""
        return log_p.gather(1, self.target[rows, None])[:, 0].mul_(self.scale[rows]).neg_()

    def gradient(self, rows: slice, log_p: Tensor) -> Tensor:
        """With respect to the logits: scale (p - one-hot target), in the place of log_p."""
        ones = log_p.new_ones(()).expand(len(log_p), 1)
        g = log_p.exp_().scatter_add_(1, self.target[rows, None], -ones)
        return g.mul_(self.scale[rows, None])


def _gradients(rows: _Rows, needs: tuple[bool, ...]) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """The sum of the losses, and gradients of x, w and b as far as they are needed."""
    total = rows.w.new_zeros(())
    gx = taeda.empty_like(rows.x) if needs[0] else None
    gw = taeda.zeros_like(rows.w) if needs[1] else None
    gb = taeda.zeros_like(rows.b) if needs[2] and rows.b is not None else None
    for where, x, log_p in rows.chunks():
        total += rows.losses(where, log_p).sum()
        if gx is gw is gb is None:
            continue
        g = rows.gradient(where, log_p)
        if gx is not None:
            gx[where] = g @ rows.w
        if gw is not None:
            gw.addmm_(g.t(), x)
        if gb is not None:
            gb += g.sum(0)
    return total, (gx, gw, gb)


class _Chunked(Function):
    """A sum of losses, whose gradients forward makes beside it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Any, *rest: Any) -> Tensor:
        *given, keep = rest
        total, gradients = _gradients(_Rows(x, w, b, *given), ctx.needs_input_grad[:3])
        ctx.gradients = [
            None if g is None else g.to(owner.dtype)
            for g, owner in zip(gradients, (x, w, b), strict=True)
        ]
        ctx.keep = keep
        return total.to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple:  # type: ignore[override]
        found = ctx.gradients
        if found is None:
            raise RuntimeError(
                "linear_cross_entropy chunked backward called twice; retain_graph=True / double "
                "backward are not supported."
            )
        if not ctx.keep:
            ctx.gradients = None
        scaled = [g if g is None else g * gy if ctx.keep else g.mul_(gy) for g in found]
        return (*scaled, None, None, None, None, None)


class _ChunkedEach(Function):
    """A loss for each row; backward makes the logits again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Any, *given: Any) -> Tensor:
        ctx.save_for_backward(x, w, b, *given[:2])
        ctx.rest = given[2:]
        rows = _Rows(x, w, b, *given)
        return taeda.cat([rows.losses(where, log_p) for where, _, log_p in rows.chunks()]).to(
            x.dtype
        )

    @staticmethod
    def backward(ctx: Any, gy: Tensor) -> tuple:  # type: ignore[override]
        x, w, b, target, scale = ctx.saved_tensors
        rows = _Rows(x, w, b, target, scale * gy.to(scale.dtype), *ctx.rest)
        _, gradients = _gradients(rows, ctx.needs_input_grad[:3])
        found = [
            None if g is None else g.to(owner.dtype)
            for g, owner in zip(gradients, (x, w, b), strict=True)
        ]
        return (*found, None, None, None, None)


def chunked(
    x: Tensor,
    w: Tensor,
    target: Tensor,
    b: Tensor | None,
    weight: Tensor | None,
    reduction: str,
    ignored: int,
    options: LinearCrossEntropyOptions,
) -> Tensor:
    """The chunked loss of indices (N,) or ()."""
    dtype = options.dtype_of_sums(x.dtype)
    if w.dtype not in (x.dtype, dtype):
        raise RuntimeError(
            f"linear_cross_entropy: expected linear_weight of dtype {x.dtype}, as the input, got "
            f"{w.dtype}"
        )
    if target.shape != x.shape[:-1]:
        raise RuntimeError(
            f"linear_cross_entropy: expected a target of shape {tuple(x.shape[:-1])} for input of "
            f"shape {tuple(x.shape)}, got {tuple(target.shape)}"
        )
    one_row = x.dim() == 1
    if one_row:
        x, target = x[None], target[None]
    size = options.rows_of_chunk(len(x), x.shape[1], len(w), x.dtype)
    kept = target != ignored
    target = target.where(kept, 0)
    scale = kept.to(dtype) if weight is None else weight.detach().to(dtype)[target] * kept
    if reduction == "mean":
        scale = scale / scale.sum()
    if reduction == "none":
        losses = _ChunkedEach.apply(x, w, b, target, scale, size, dtype)
        return losses[0] if one_row else losses
    return _Chunked.apply(x, w, b, target, scale, size, dtype, options.allow_retain_graph)
