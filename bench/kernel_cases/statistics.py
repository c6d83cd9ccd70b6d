"""Statistics, histograms, distances."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_cases.registry import MEGA, unary

Case = tuple[str, Callable[[Any, Any], Any], tuple[int, ...]]


def of_normal_numbers(*cases: Case) -> None:
    for name, call, sizes in cases:
        unary(
            f"{name} of {' x '.join(str(n) for n in sizes)}",
            None,
            call,
            of=lambda torch, sizes=sizes: torch.randn(*sizes),
        )


of_normal_numbers(
    ("cov", lambda torch, x: torch.cov(x), (256, 4096)),
    ("corrcoef", lambda torch, x: torch.corrcoef(x), (256, 4096)),
    ("gradient", lambda torch, x: torch.gradient(x), (1024, 1024)),
    ("renorm", lambda torch, x: torch.renorm(x, 2, 0, 1.0), (1024, 1024)),
)
of_normal_numbers(
    ("histogram", lambda torch, x: torch.histogram(x, 64), (MEGA,)),
    ("histogramdd", lambda torch, x: torch.histogramdd(x, [16, 16]), (MEGA >> 3, 2)),
    ("cdist", lambda torch, x: torch.cdist(x, x), (512, 64)),
    ("cdist, p=1,", lambda torch, x: torch.cdist(x, x, 1.0), (256, 64)),
    ("pdist", lambda torch, x: torch.pdist(x), (256, 64)),
    ("pdist, p=1.5,", lambda torch, x: torch.pdist(x, 1.5), (256, 64)),
    ("hash_tensor", lambda torch, x: torch.hash_tensor(x), (MEGA,)),
)
of_normal_numbers(
    ("cummax", lambda torch, x: torch.cummax(x, 1), (1024, 1024)),
    ("cummax of columns", lambda torch, x: torch.cummax(x, 0), (1024, 1024)),
    ("logcumsumexp", lambda torch, x: torch.logcumsumexp(x, 1), (1024, 1024)),
    ("quantile", lambda torch, x: torch.quantile(x, 0.9, 1), (1024, 1024)),
    ("nanquantile", lambda torch, x: torch.nanquantile(x, 0.9), (MEGA,)),
    ("nansum", lambda torch, x: torch.nansum(x, 1), (1024, 1024)),
    ("nanmedian", lambda torch, x: torch.nanmedian(x, 1), (256, 1024)),
)
of_normal_numbers(
    ("trapezoid", lambda torch, x: torch.trapezoid(x), (1024, 1024)),
    ("complex sum", lambda torch, x: torch.view_as_complex(x).sum(), (MEGA, 2)),
)
