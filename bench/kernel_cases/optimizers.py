"""Steps of optimizers."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import MEGA, Run, kernel


@kernel("AdamW step, 25 MB of weights", bytes=7 * 25 * MEGA)
def adamw(torch: Any) -> Run:
    weights = [torch.randn(512, 512, requires_grad=True) for _ in range(25)]
    for w in weights:
        w.grad = torch.randn(512, 512)
    return torch.optim.AdamW(weights, lr=1e-4).step
