"""softmax, layer_norm, cross_entropy, activations of a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_cases.registry import MEGA, layer, unary


def square(size: int) -> Callable[[Any], Any]:
    return lambda torch: torch.randn(size, size)


for _size in (1000, 2048):
    unary(
        f"softmax(1), {_size} x {_size}",
        8 * _size * _size,
        lambda torch, x: torch.softmax(x, 1),
        of=square(_size),
    )
    unary(
        f"log_softmax(1), {_size} x {_size}",
        8 * _size * _size,
        lambda torch, x: torch.log_softmax(x, 1),
        of=square(_size),
    )

# Bytes of both: forward reads x and writes y, backward reads gy and what it needs of x or y and
# writes gx.
layer(
    "layer_norm, 2048 x 2048",
    (32 * MEGA, 80 * MEGA),
    lambda torch, x, w, b: torch.nn.functional.layer_norm(x, (2048,), w, b),
    lambda torch: (torch.randn(2048, 2048), torch.ones(2048), torch.zeros(2048)),
    wanted=3,
)
layer(
    "cross_entropy, 8192 x 1000",
    (32_768_000, 98_304_000),
    lambda torch, x, target: torch.nn.functional.cross_entropy(x, target),
    lambda torch: (torch.randn(8192, 1000), torch.randint(0, 1000, (8192,))),
)
layer(
    "gelu",
    (32 * MEGA, 80 * MEGA),
    lambda torch, x: torch.nn.functional.gelu(x),
    lambda torch: (torch.randn(2048, 2048),),
)
layer(
    "relu of a graph",
    (32 * MEGA, 80 * MEGA),
    lambda torch, x: torch.relu(x),
    lambda torch: (torch.randn(2048, 2048),),
)
layer(
    "dropout in training",
    (32 * MEGA, 68 * MEGA),
    lambda torch, x: torch.nn.functional.dropout(x, 0.1),
    lambda torch: (torch.randn(2048, 2048),),
)
