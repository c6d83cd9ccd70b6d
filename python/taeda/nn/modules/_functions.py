"""Layers whose gradient is written by hand."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor
from taeda.autograd import Function
from taeda.autograd.function import once_differentiable

__all__ = ["CrossMapLRN2d"]


def _window(channels: int, size: int) -> list[list[float]]:
    """Which channels' squares each channel's sum has: a row a channel.

    The first row takes the channels of half a window; each later one takes one more at its end, as
    long as there are any, and drops one, never the first channel, once the window has passed.
    """
    half = int((size - 1) / 2 + 1)
    row = [1.0 if j < half else 0.0 for j in range(channels)]
    rows = [row]
    for c in range(1, channels):
        row = list(row)
        if c < channels - half + 1:
            row[c + half - 1] += 1.0
        if c > half:
            row[c - half] -= 1.0
        rows.append(row)
    return rows


def _gradient_window(channels: int, size: int) -> list[list[float]]:
    """Which channels' terms the gradient of each channel has."""
    start = int(size - (size - 1) / 2)
    if start > size - 1:
        raise RuntimeError(
            f"start ({start}) + length ({channels}) exceeds dimension size ({channels + size - 1})."
        )
    return [[1.0 if 0 <= j - c + start < size else 0.0 for j in range(channels)]
            for c in range(channels)]  # fmt: skip


def _mixed(window: list[list[float]], x: Tensor) -> Tensor:
    """The sums over channels of (n, c, h, w) that a window names."""
    return taeda.einsum("cj,njhw->nchw", x.new_tensor(window), x)


class CrossMapLRN2d(Function):
    """`nn.CrossMapLRN2d`: the gradient is PyTorch's, which is not that of the formula."""

    @staticmethod
    def forward(  # type: ignore[override]
        ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1
    ) -> Tensor:
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        sums = _mixed(_window(input.size(1), size), input**2)
        scale = sums.mul_(alpha / size).add_(k)
        output = scale**-beta * input
        ctx.size, ctx.factor, ctx.beta = size, 2 * alpha * beta / size, beta
        ctx.save_for_backward(input, output, scale)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_output: Tensor) -> tuple:  # type: ignore[override]
        input, output, scale = ctx.saved_tensors
        terms = grad_output * output / scale
        sums = _mixed(_gradient_window(input.size(1), ctx.size), terms)
        grad = scale**-ctx.beta * grad_output - ctx.factor * input * sums
        return grad, None, None, None, None
