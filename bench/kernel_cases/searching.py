"""nonzero, searchsorted, counting."""

from __future__ import annotations

from kernel_cases.registry import MEGA, binary, unary

unary("nonzero", None, lambda torch, x: x.nonzero(), of=lambda torch: torch.rand(2048, 2048) > 0.9)
unary(
    "where(cond)",
    None,
    lambda torch, x: torch.where(x),
    of=lambda torch: torch.rand(2048, 2048) > 0.9,
)
binary(
    "x[mask]",
    None,
    lambda torch, x, m: x[m],
    lambda torch: (torch.randn(2048, 2048), torch.rand(2048, 2048) > 0.5),
)
binary(
    "searchsorted, 1M in 1000",
    None,
    lambda torch, b, x: torch.searchsorted(b, x),
    lambda torch: (torch.randn(1000).sort()[0], torch.randn(MEGA)),
)
unary(
    "bincount, 1M",
    8 * MEGA,
    lambda torch, x: torch.bincount(x, minlength=1000),
    of=lambda torch: torch.randint(0, 1000, (MEGA,)),
)

binary(
    "isin, 1M in 1000",
    None,
    lambda torch, x, y: torch.isin(x, y),
    lambda torch: (torch.randint(0, 10_000, (MEGA,)), torch.randint(0, 10_000, (1000,))),
)
unary(
    "histc, 1M in 100",
    4 * MEGA,
    lambda torch, x: torch.histc(x, 100, -3, 3),
    of=lambda torch: torch.randn(MEGA),
)

unary(
    "unravel_index, 1M",
    None,
    lambda torch, i: torch.unravel_index(i, (1024, 1024)),
    of=lambda torch: torch.randint(0, MEGA, (MEGA,)),
)
unary(
    "nonzero_static of 1024 x 1024",
    None,
    lambda torch, x: torch.nonzero_static(x, size=MEGA >> 3),
    of=lambda torch: torch.rand(1024, 1024) > 0.9,
)
