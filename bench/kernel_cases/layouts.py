"""Transposed and strided operands, joining and repeating."""

from __future__ import annotations

from kernel_cases.registry import MEGA, binary, matrices, unary

unary("x.t().contiguous()", 32 * MEGA, lambda torch, x: x.t().contiguous())
unary(
    "permute(0, 2, 3, 1).contiguous()",
    32 * MEGA,
    lambda torch, x: x.permute(0, 2, 3, 1).contiguous(),
    of=lambda torch: torch.randn(16, 64, 64, 64),
)
unary("x[::2].clone()", 16 * MEGA, lambda torch, x: x[::2].clone())
unary("x[:, ::2].clone()", 24 * MEGA, lambda torch, x: x[:, ::2].clone())
unary("x[:, ::2] + 1", 24 * MEGA, lambda torch, x: x[:, ::2] + 1)
unary("x.flip(1)", 32 * MEGA, lambda torch, x: x.flip(1))
binary("x + y.t()", 48 * MEGA, lambda torch, x, y: x + y.t(), matrices)
binary(
    "x[::2] + y.t(), 1000 x 1000",
    12_000_000,
    lambda torch, x, y: x[::2] + y.t(),
    lambda torch: (torch.randn(2000, 1000), torch.randn(1000, 1000)),
)
binary(
    "x + row",
    32 * MEGA,
    lambda torch, x, y: x + y,
    lambda torch: (torch.randn(2048, 2048), torch.randn(2048)),
)
binary(
    "x + column",
    32 * MEGA,
    lambda torch, x, y: x + y,
    lambda torch: (torch.randn(2048, 2048), torch.randn(2048, 1)),
)
unary("tril", 24 * MEGA, lambda torch, x: x.tril())
unary("roll(3, 1)", 32 * MEGA, lambda torch, x: x.roll(3, 1))
unary(
    "repeat_interleave(4, 1)",
    40 * MEGA,
    lambda torch, x: x.repeat_interleave(4, 1),
    of=lambda torch: torch.randn(1024, 2048),
)
binary("cat, dim 0", 64 * MEGA, lambda torch, x, y: torch.cat([x, y]), matrices)
binary("cat, dim 1", 64 * MEGA, lambda torch, x, y: torch.cat([x, y], 1), matrices)
binary("stack, last dim", 64 * MEGA, lambda torch, x, y: torch.stack([x, y], -1), matrices)
