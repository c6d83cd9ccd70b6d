"""Normalization layers' functions."""

from __future__ import annotations

import math

import taeda
from taeda import Tensor

from .raw import fallback, raw

__all__ = ["batch_norm", "group_norm", "instance_norm", "local_response_norm", "rms_norm"]

_batch_norm = raw("batch_norm")
_group_norm = raw("group_norm")


def _verify_batch_size(size: list[int]) -> None:
    if size[0] * math.prod(size[2:]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {size}"
        )


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel (dimension 1) over the batch, or with running statistics."""
    if training and input.dim() > 1:
        _verify_batch_size(input.size())
    return _batch_norm(
        input,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
        training=training,
        momentum=momentum,
        eps=eps,
    )


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes ``num_groups`` groups of channels of each sample."""
    if input.dim() < 2:
        raise RuntimeError(
            f"Expected at least 2 dimensions for input tensor but received {input.dim()}"
        )
    size = input.size()
    _verify_batch_size([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return _group_norm(input, num_groups, weight, bias, eps)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes each channel of each sample: batch normalization of ``n * c`` channels."""
    size = input.size()
    if use_input_stats:
        spatial = math.prod(size[2:])
        if spatial == 1:
            raise ValueError(
                f"Expected more than 1 spatial element when training, got input size {input.size()}"
            )
    elif running_mean is None or running_var is None:
        raise RuntimeError(
            "Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, c = size[0], size[1]

    def per_sample(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.repeat(n)

    mean, var = per_sample(running_mean), per_sample(running_var)
    result = _batch_norm(
        input.contiguous().view(1, n * c, *size[2:]),
        running_mean=mean,
        running_var=var,
        weight=per_sample(weight),
        bias=per_sample(bias),
        training=use_input_stats,
        momentum=momentum,
        eps=eps,
    )
    if use_input_stats:
        with taeda.no_grad():
            # Each sample moved its own copy of the statistics: keep their mean.
            if running_mean is not None:
                running_mean.copy_(mean.view(n, c).mean(0))
            if running_var is not None:
                running_var.copy_(var.view(n, c).mean(0))
    return result.view(size)


@fallback
def rms_norm(
    input: Tensor,
    normalized_shape: list[int],
    weight: Tensor | None = None,
    eps: float | None = None,
) -> Tensor:
    """``x / sqrt(mean(x^2) + eps) * weight`` over the last dimensions."""
    dims = [-i - 1 for i in range(len(normalized_shape))]
    x = input.float() if input.dtype in (taeda.float16, taeda.bfloat16) else input
    if eps is None:
        eps = taeda.finfo(x.dtype).eps
    y = (x * (x.pow(2).mean(dims, keepdim=True) + eps).rsqrt()).to(input.dtype)
    return y if weight is None else y * weight


def local_response_norm(
    input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """``y_c = x_c (k + alpha / size * sum of x^2 over neighbouring channels)^-beta``."""
    from taeda.nn import functional as F

    if input.dim() < 3:
        raise ValueError(
            f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    # The window runs over channels: average pooling over them, as one more spatial dimension.
    div = (input * input).unsqueeze(1)
    if input.dim() == 3:
        div = F.pad(div, (0, 0, size // 2, (size - 1) // 2))
        div = F.avg_pool2d(div, (size, 1), stride=1).squeeze(1)
    else:
        sizes = input.size()
        div = div.view(sizes[0], 1, sizes[1], sizes[2], -1)
        div = F.pad(div, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        div = F.avg_pool3d(div, (size, 1, 1), stride=1).squeeze(1).view(sizes)
    return input / (div * alpha + k).pow(beta)
