"""Sorting, selecting, unique."""

from __future__ import annotations

from kernel_cases.registry import MEGA, unary

unary("sort, 1M floats", None, lambda torch, x: x.sort(), of=lambda torch: torch.randn(MEGA))
unary(
    "sort, 10000 x 100", None, lambda torch, x: x.sort(), of=lambda torch: torch.randn(10_000, 100)
)
unary(
    "argsort, 1M int64",
    None,
    lambda torch, x: x.argsort(),
    of=lambda torch: torch.randint(0, 1 << 40, (MEGA,)),
)
unary(
    "argsort, 1M int64 below 1000",
    None,
    lambda torch, x: x.argsort(),
    of=lambda torch: torch.randint(0, 1000, (MEGA,)),
)
unary(
    "topk(5), 1000 x 1000",
    4_000_000,
    lambda torch, x: x.topk(5),
    of=lambda torch: torch.randn(1000, 1000),
)
unary(
    "topk(5), 10000 x 100",
    4_000_000,
    lambda torch, x: x.topk(5),
    of=lambda torch: torch.randn(10_000, 100),
)
unary(
    "topk(2), 100000 x 8",
    3_200_000,
    lambda torch, x: x.topk(2),
    of=lambda torch: torch.randn(100_000, 8),
)
unary(
    "unique, 1M int64",
    None,
    lambda torch, x: x.unique(),
    of=lambda torch: torch.randint(0, 10_000, (MEGA,)),
)

unary("median(1)", None, lambda torch, x: x.median(1), of=lambda torch: torch.randn(1000, 1000))
unary(
    "kthvalue(100)",
    None,
    lambda torch, x: x.kthvalue(100, 1),
    of=lambda torch: torch.randn(1000, 1000),
)
unary(
    "unique_consecutive, 1M int64",
    None,
    lambda torch, x: x.unique_consecutive(),
    of=lambda torch: torch.randint(0, 10_000, (MEGA,)).sort()[0],
)
