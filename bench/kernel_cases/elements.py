"""Sums with broadcasting, powers, comparisons, integer division."""

from __future__ import annotations

from kernel_cases.registry import MEGA, binary, integers, matrices, unary

unary("x + 1, fresh result", 32 * MEGA, lambda torch, x: x + 1)
unary("x.add_(1)", 32 * MEGA, lambda torch, x: x.add_(1))
binary(
    "add(x, y, out=)",
    48 * MEGA,
    lambda torch, x, y, z: torch.add(x, y, out=z),
    lambda torch: (*matrices(torch), torch.empty(2048, 2048)),
)
unary("relu", 32 * MEGA, lambda torch, x: torch.relu(x))

unary("exp", 32 * MEGA, lambda torch, x: x.exp())
unary(
    "x ** 2.5, positive",
    32 * MEGA,
    lambda torch, x: x**2.5,
    of=lambda torch: torch.rand(2048, 2048),
)
unary("x > 0", 20 * MEGA, lambda torch, x: x > 0)

for _dtype in ("int32", "int64"):
    _size = 4 if _dtype == "int32" else 8
    binary(
        f"x // y, {_dtype}",
        3 * _size * MEGA,
        lambda torch, x, y: x // y,
        lambda torch, dtype=_dtype: (integers(torch, dtype), integers(torch, dtype, 1, 99)),
    )
    unary(
        f"x % 7, {_dtype}",
        2 * _size * MEGA,
        lambda torch, x: x % 7,
        of=lambda torch, dtype=_dtype: integers(torch, dtype),
    )
