"""Random numbers and distributions."""

from __future__ import annotations

from typing import Any

from kernel_cases.registry import MEGA, Run, kernel, unary


@kernel("rand, 1M")
def rand(torch: Any) -> Run:
    return lambda: torch.rand(MEGA)


@kernel("randn, 1M")
def randn(torch: Any) -> Run:
    return lambda: torch.randn(MEGA)


@kernel("randint, 1M")
def randint(torch: Any) -> Run:
    return lambda: torch.randint(0, 100, (MEGA,))


@kernel("randperm, 1M")
def randperm(torch: Any) -> Run:
    return lambda: torch.randperm(MEGA)


@kernel("randperm, 60000")
def small_randperm(torch: Any) -> Run:
    return lambda: torch.randperm(60_000)


@kernel("bernoulli, 1M")
def bernoulli(torch: Any) -> Run:
    x = torch.rand(MEGA)
    return lambda: torch.bernoulli(x)


for draw, call in {
    "_standard_gamma": lambda torch, x: torch._standard_gamma(x),
    "_sample_dirichlet": lambda torch, x: torch._sample_dirichlet(x),
    "poisson": lambda torch, x: torch.poisson(x),
    "binomial": lambda torch, x: torch.binomial(x.round(), x / 8),
}.items():
    unary(f"{draw}, 64K", None, call, of=lambda torch: torch.rand(1 << 13, 8) * 7 + 0.5)
