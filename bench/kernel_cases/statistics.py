"""Statistics and histograms."""

from __future__ import annotations

from kernel_cases.registry import MEGA, unary

for statistic, call, sizes in (
    ("cov", lambda torch, x: torch.cov(x), (256, 4096)),
    ("corrcoef", lambda torch, x: torch.corrcoef(x), (256, 4096)),
    ("gradient", lambda torch, x: torch.gradient(x), (1024, 1024)),
    ("renorm", lambda torch, x: torch.renorm(x, 2, 0, 1.0), (1024, 1024)),
    ("histogram", lambda torch, x: torch.histogram(x, 64), (MEGA,)),
    ("histogramdd", lambda torch, x: torch.histogramdd(x, [16, 16]), (MEGA >> 3, 2)),
    ("logcumsumexp", lambda torch, x: torch.logcumsumexp(x, 1), (1024, 1024)),
    ("quantile", lambda torch, x: torch.quantile(x, 0.9, 1), (1024, 1024)),
    ("nanquantile", lambda torch, x: torch.nanquantile(x, 0.9), (MEGA,)),
):
    unary(
        f"{statistic} of {' x '.join(str(n) for n in sizes)}",
        None,
        call,
        of=lambda torch, sizes=sizes: torch.randn(*sizes),
    )
