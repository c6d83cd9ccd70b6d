"""_foreach functions."""

from __future__ import annotations

from kernel_cases.registry import unary

for listed, call in {
    "_foreach_add": lambda torch, x: torch._foreach_add(x, 1.0),
    "_foreach_mul_": lambda torch, x: torch._foreach_mul_(x, 0.999),
    "_foreach_zero_": lambda torch, x: torch._foreach_zero_(x),
    "_foreach_lerp_": lambda torch, x: torch._foreach_lerp_(x, x, 0.5),
    "_foreach_sqrt": lambda torch, x: torch._foreach_sqrt(x),
    "_foreach_copy_": lambda torch, x: torch._foreach_copy_(x, x[::-1]),
    "_foreach_maximum": lambda torch, x: torch._foreach_maximum(x, x),
    "_foreach_norm": lambda torch, x: torch._foreach_norm(x),
    "_foreach_addcdiv_": lambda torch, x: torch._foreach_addcdiv_(x, x, x, 1e-9),
}.items():
    unary(
        f"{listed} of 100 x 4096",
        None,
        call,
        of=lambda torch: [torch.rand(4096) + 0.5 for _ in range(100)],
    )
