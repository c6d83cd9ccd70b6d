"""scaled_dot_product_attention."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import PAIRS, Run, kernel


def attention(name: str, causal: bool, backward: bool) -> None:
    """12 heads of 512 tokens; a causal mask hides half of the products."""
    products = (7 if backward else 2) * 2 * 12 * 512 * 512 * 64

    def make(torch: Any) -> Run:
        q, k, v, gy = (torch.randn(1, 512, 12, 64).transpose(1, 2) for _ in range(4))
        attend = torch.nn.functional.scaled_dot_product_attention
        if not backward:
            return lambda: attend(q, k, v, is_causal=causal)
        inputs = [x.requires_grad_() for x in (q, k, v)]
        return lambda: torch.autograd.grad(attend(*inputs, is_causal=causal), inputs, gy)

    kernel(name, flops=products // 2 if causal else products)(make)


attention("attention, 12 x 512 x 64", causal=False, backward=False)
attention("causal attention, 12 x 512 x 64", causal=True, backward=False)
attention("attention, forward and backward", causal=False, backward=True)
attention("causal attention, forward and backward", causal=True, backward=True)

PAIRS["causal attention over full"] = (
    "causal attention, 12 x 512 x 64", "attention, 12 x 512 x 64", 0.6,
)  # fmt: skip
PAIRS["causal attention over full, forward and backward"] = (
    "causal attention, forward and backward", "attention, forward and backward", 0.6,
)  # fmt: skip
