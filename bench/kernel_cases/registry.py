"""What cases of the suite `kernels` are made of.

A case names the bytes that it has to move at least, each input read once and each result written
once, or the floating-point operations of a product; None where neither says what limits it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Run = Callable[[], Any]
Make = Callable[[Any], Run]
MEGA = 1 << 20
KERNELS: dict[str, Make] = {}
BYTES: dict[str, int] = {}
FLOPS: dict[str, int] = {}
# The yardsticks of bandwidth by the bytes that they move: what fits a cache moves faster.
COPIES: dict[int, str] = {}

# name: two cases and the most that the first may take of the second's time.
PAIRS: dict[str, tuple[str, str, float]] = {}


def kernel(name: str, *, bytes: int | None = None, flops: int | None = None) -> Callable[..., Make]:
    def add(make: Make) -> Make:
        assert name not in KERNELS, name
        KERNELS[name] = make
        if bytes:
            BYTES[name] = bytes
        if flops:
            FLOPS[name] = flops
        return make

    return add


def unary(name: str, bytes: int | None, call: Callable[[Any, Any], Any], **options: Any) -> None:
    """call(torch, x) on 2048 x 2048 random floats, or on what `of(torch)` gives."""
    of = options.get("of", lambda torch: torch.randn(2048, 2048))

    def make(torch: Any) -> Run:
        x = of(torch)
        return lambda: call(torch, x)

    kernel(name, bytes=bytes)(make)


def binary(name: str, bytes: int | None, call: Callable[..., Any], of: Callable[..., Any]) -> None:
    """call(torch, *tensors) on the tensors that `of(torch)` gives."""

    def make(torch: Any) -> Run:
        tensors = of(torch)
        return lambda: call(torch, *tensors)

    kernel(name, bytes=bytes)(make)


def matrices(torch: Any) -> tuple[Any, Any]:
    return torch.randn(2048, 2048), torch.randn(2048, 2048)


def positions(torch: Any, *sizes: int) -> tuple[Any, Any]:
    return torch.randn(2048, 2048), torch.randint(0, 2048, sizes)


def integers(torch: Any, dtype: str, low: int = -9999, high: int = 9999) -> Any:
    return torch.randint(low, high, (MEGA,), dtype=getattr(torch, dtype))


def layer(
    name: str,
    bytes: tuple[int, int],
    call: Callable[..., Any],
    of: Callable[..., Any],
    wanted: int = 1,
) -> None:
    """call(torch, *tensors) forward, and with its backward to the first `wanted` tensors; `bytes`
    of the one and of both together."""

    def forward(torch: Any) -> Run:
        tensors = of(torch)
        return lambda: call(torch, *tensors)

    def both(torch: Any) -> Run:
        tensors = of(torch)
        inputs = [x.requires_grad_() for x in tensors[:wanted]]
        gy = torch.randn_like(call(torch, *tensors).detach())
        return lambda: torch.autograd.grad(call(torch, *tensors), inputs, gy)

    kernel(name, bytes=bytes[0])(forward)
    kernel(f"{name}, forward and backward", bytes=bytes[1])(both)


def yardstick(name: str) -> tuple[str, str] | None:
    """What limits the case `name`, as a suite and a case of it: the peak of arithmetic, or the copy
    that moves nearly as many bytes."""
    if name in FLOPS:
        return "peak", "bf16" if "bf16" in name else "f32"
    if name not in BYTES:
        return None
    return "kernels", COPIES[min(COPIES, key=lambda moved: abs(math.log(moved / BYTES[name])))]
