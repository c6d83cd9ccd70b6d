"""Convolutions and their gradients."""

from __future__ import annotations

import math
from typing import Any

from kernel_cases.registry import Make, Run, kernel


def convolution(name: str, x: tuple[int, ...], w: tuple[int, ...], stride: int = 1) -> None:
    """Forward and both gradients of a convolution that pads by half of its filter."""
    n, channels, height, width = x
    out = n * w[0] * -(-height // stride) * -(-width // stride)
    # A depthwise one does little for each element that it moves.
    moved = 4 * (math.prod(x) + out)
    limit = {"flops": 2 * out * math.prod(w[1:])} if w[1] > 1 else {"bytes": moved}

    def make(part: str) -> Make:
        def start(torch: Any) -> Run:
            images, filters = torch.randn(*x), torch.randn(*w)
            options = {"stride": stride, "padding": w[2] // 2, "groups": channels // w[1]}
            call = torch.nn.functional.conv2d
            if part == "forward":
                return lambda: call(images, filters, **options)
            source = (images if part == "gradient of x" else filters).requires_grad_()
            y = call(images, filters, **options)
            gy = torch.randn_like(y.detach())
            return lambda: torch.autograd.grad(y, source, gy, retain_graph=True)

        return start

    for part in ("forward", "gradient of x", "gradient of w"):
        # A first layer's images need no gradient.
        if channels > 3 or part != "gradient of x":
            kernel(f"{name}, {part}", **limit)(make(part))


convolution("3x3, 64 channels, 56 x 56", (4, 64, 56, 56), (64, 64, 3, 3))
convolution("3x3, 256 channels, 14 x 14", (8, 256, 14, 14), (256, 256, 3, 3))
convolution("1x1, 256 to 1024 channels, 14 x 14", (8, 256, 14, 14), (1024, 256, 1, 1))
convolution("1x1 stride 2, 512 to 1024, 28 x 28", (4, 512, 28, 28), (1024, 512, 1, 1), stride=2)
convolution("3x3 stride 2, 128 channels, 56 x 56", (4, 128, 56, 56), (128, 128, 3, 3), stride=2)
convolution("depthwise 3x3, 512 channels, 14 x 14", (8, 512, 14, 14), (512, 1, 3, 3))
convolution(
    "depthwise 3x3 stride 2, 128 channels, 56 x 56", (8, 128, 56, 56), (128, 1, 3, 3), stride=2
)
convolution("7x7 stride 2, 3 to 64 channels, 224 x 224", (4, 3, 224, 224), (64, 3, 7, 7), stride=2)
convolution("3x3 stride 2, 3 to 32 channels, 224 x 224", (8, 3, 224, 224), (32, 3, 3, 3), stride=2)
