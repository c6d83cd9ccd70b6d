"""LSTM and GRU."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import PAIRS, Run, kernel


def recurrent(kind: str, gates: int) -> None:
    """Forward and backward of 24 steps of 16 samples, 512 units."""

    def make(torch: Any) -> Run:
        layer = getattr(torch.nn, kind)(512, 512)
        inputs = [torch.randn(24, 16, 512).requires_grad_(), *layer.parameters()]
        gy = torch.randn(24, 16, 512)
        return lambda: torch.autograd.grad(layer(inputs[0])[0], inputs, gy)

    kernel(f"{kind}, 24 x 16 x 512, forward and backward", flops=12 * 24 * 16 * 512 * 512 * gates)(
        make
    )


recurrent("LSTM", 4)
recurrent("GRU", 3)

PAIRS["GRU over LSTM"] = (
    "GRU, 24 x 16 x 512, forward and backward", "LSTM, 24 x 16 x 512, forward and backward", 1,
)  # fmt: skip
