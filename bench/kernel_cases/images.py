"""Layers of images: batch norm, pooling, resizing, grid_sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernel_cases.registry import MEGA, Run, kernel, layer, unary


def training(name: str, bytes: int, call: Callable[[Any, Any], Any]) -> None:
    """call(torch, x) on random images, and its gradient."""

    def make(torch: Any) -> Run:
        x = images(torch).requires_grad_()
        gy = torch.randn_like(call(torch, x).detach())
        return lambda: torch.autograd.grad(call(torch, x), x, gy)

    kernel(f"{name}, forward and backward", bytes=bytes)(make)


IMAGES = 16 * 64 * 56 * 56 * 4


def images(torch: Any) -> Any:
    return torch.randn(16, 64, 56, 56)


def normalize(torch: Any, x: Any) -> Any:
    ones = torch.ones(64)
    return torch.nn.functional.batch_norm(x, None, None, ones, ones, training=True)


def pool(torch: Any, x: Any) -> Any:
    return torch.nn.functional.max_pool2d(x, 3, 2, 1)


unary("batch_norm, training", 2 * IMAGES, normalize, of=images)
training("batch_norm, training", 5 * IMAGES, normalize)
unary("max_pool2d, 3 x 3 stride 2", IMAGES * 5 // 4, pool, of=images)
# Where the maxima were is found on either way.
training("max_pool2d, 3 x 3 stride 2", IMAGES * 7 // 2, pool)

for _mode in ("bilinear", "bicubic"):
    layer(
        f"interpolate by 2, {_mode}",
        (20 * MEGA, 40 * MEGA),
        lambda torch, x, mode=_mode: torch.nn.functional.interpolate(x, scale_factor=2, mode=mode),
        lambda torch: (torch.randn(4, 16, 128, 128),),
    )


def grid_sample(name: str, *sizes: int, backward: bool = False) -> None:
    """A bilinear warp of images [n, c, h, w]."""

    def make(torch: Any) -> Run:
        x, grid = torch.randn(*sizes), torch.rand(sizes[0], *sizes[2:], 2) * 2 - 1
        sample = torch.nn.functional.grid_sample
        if not backward:
            return lambda: sample(x, grid, align_corners=False)
        inputs, gy = [x.requires_grad_(), grid.requires_grad_()], torch.randn(*sizes)
        return lambda: torch.autograd.grad(sample(x, grid, align_corners=False), inputs, gy)

    kernel(name)(make)


grid_sample("grid_sample, 8 x 3 x 224 x 224", 8, 3, 224, 224)
grid_sample("grid_sample, 4 x 64 x 56 x 56", 4, 64, 56, 56)
grid_sample("grid_sample, forward and backward", 4, 16, 56, 56, backward=True)
