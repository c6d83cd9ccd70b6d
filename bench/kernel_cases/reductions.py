"""Sums, extremes, scans; torch.masked."""

from __future__ import annotations

from kernel_cases.registry import MEGA, binary, unary

unary("sum", 16 * MEGA, lambda torch, x: x.sum())
unary("sum(0)", 16 * MEGA, lambda torch, x: x.sum(0))
unary("sum(1)", 16 * MEGA, lambda torch, x: x.sum(1))
unary("sum, 1M floats", 4 * MEGA, lambda torch, x: x.sum(), of=lambda torch: torch.randn(MEGA))
unary(
    "sum(0), 1000 x 1000",
    4_000_000,
    lambda torch, x: x.sum(0),
    of=lambda torch: torch.randn(1000, 1000),
)
unary("mean(1)", 16 * MEGA, lambda torch, x: x.mean(1))
unary("max", 16 * MEGA, lambda torch, x: x.max())
unary("max(1)", 16 * MEGA, lambda torch, x: x.max(1))
unary("argmax(1)", 16 * MEGA, lambda torch, x: x.argmax(1))
unary("argmax(0)", 16 * MEGA, lambda torch, x: x.argmax(0))
unary("var(1)", 16 * MEGA, lambda torch, x: x.var(1))
unary("norm", 16 * MEGA, lambda torch, x: x.norm())
unary("logsumexp(1)", 16 * MEGA, lambda torch, x: x.logsumexp(1))
unary("cumsum(1)", 32 * MEGA, lambda torch, x: x.cumsum(1))
unary("cumsum(0)", 32 * MEGA, lambda torch, x: x.cumsum(0))
unary(
    "any",
    4 * MEGA,
    lambda torch, x: x.any(),
    of=lambda torch: torch.zeros(2048, 2048, dtype=torch.bool),
)
unary("count_nonzero", 16 * MEGA, lambda torch, x: x.count_nonzero())

for reduction in ("sum", "amax", "var", "softmax"):
    binary(
        f"masked.{reduction}(1) of 1024 x 1024",
        None,
        lambda torch, x, m, name=reduction: getattr(torch.masked, name)(x, 1, mask=m),
        lambda torch: (torch.randn(1024, 1024), torch.rand(1024, 1024) > 0.3),
    )
