"""embedding and embedding_bag."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import MEGA, Run, kernel, layer

layer(
    "embedding, 4096 rows of 256",
    (8 * MEGA, 8 * MEGA + 50_000 * 1024 + 8 * MEGA),
    lambda torch, w, i: torch.nn.functional.embedding(i, w),
    lambda torch: (torch.randn(50_000, 256), torch.randint(0, 50_000, (4096,))),
)


def embedding_bag(name: str, width: int, backward: bool = False) -> None:
    """2048 bags of 20 rows of a table with 100,000."""

    def make(torch: Any) -> Run:
        weight, rows = torch.randn(100_000, width), torch.randint(0, 100_000, (2048, 20))
        bag = torch.nn.functional.embedding_bag
        if not backward:
            return lambda: bag(rows, weight, mode="sum")
        weight.requires_grad_()
        gy = torch.randn(2048, width)
        return lambda: torch.autograd.grad(bag(rows, weight, mode="mean"), weight, gy)

    kernel(name)(make)


embedding_bag("embedding_bag, width 64", 64)
embedding_bag("embedding_bag, width 16", 16)
embedding_bag("embedding_bag, forward and backward", 64, backward=True)
