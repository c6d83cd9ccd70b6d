"""What PyTorch has as operators and taeda as functions of Python, or under another overload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import taeda
from taeda import Tensor

from .spelling import aten, define

# --- functions of torch.special ---


def _special(name: str) -> None:
    @define(f"special_{name}(Tensor self) -> Tensor")
    def _(self: Tensor) -> Tensor:
        return getattr(taeda.special, name)(self)


for _name in ("erfcx", "i0e", "i1", "i1e", "ndtr", "ndtri"):
    _special(_name)


@define("special_zeta(Tensor self, Tensor other) -> Tensor")
def _zeta(self: Tensor, other: Tensor) -> Tensor:
    return taeda.special.zeta(self, other)


@define("special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor")
@define("special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor")
def _zeta_of_numbers(self: Any, other: Any) -> Tensor:
    return taeda.special.zeta(self, other)


# --- images ---


def _grid_sampler(dims: int) -> None:
    @define(
        f"grid_sampler_{dims}d(Tensor input, Tensor grid, int interpolation_mode, int "
        "padding_mode, bool align_corners) -> Tensor"
    )
    def _(input: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
        return taeda.grid_sampler(input, grid, mode, padding, align_corners)


for _dims in (2, 3):
    _grid_sampler(_dims)


def _sizes(x: Tensor, sizes: Any, scales: Any) -> list[int]:
    if (sizes is None) == (scales is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if sizes is not None:
        return list(sizes)
    return [int(n * scale) for n, scale in zip(x.shape[2:], scales)]


def _resized(name: str, corners: bool) -> None:
    arguments = "bool align_corners, " if corners else ""

    @define(
        f"{name}.vec(Tensor input, SymInt[]? output_size, {arguments}float[]? scale_factors) -> "
        "Tensor"
    )
    def _(x: Tensor, sizes: Sequence[int] | None, *rest: Any) -> Tensor:
        *options, scales = rest
        resize = getattr(aten, name).default
        return resize(x, _sizes(x, sizes, scales), *options, *(scales or ()))


for _name in ("nearest1d", "nearest2d", "nearest3d"):
    _resized(f"upsample_{_name}", corners=False)
    _resized(f"_upsample_nearest_exact{_name[-2:]}", corners=False)
for _name in ("linear1d", "bilinear2d", "trilinear3d", "bicubic2d"):
    _resized(f"upsample_{_name}", corners=True)
for _name in ("bilinear2d", "bicubic2d"):
    _resized(f"_upsample_{_name}_aa", corners=True)


# --- normalization ---

_AFFINE = "Tensor input, Tensor? weight, Tensor? bias"
_THREE = "(Tensor, Tensor, Tensor)"


@define(
    f"_native_batch_norm_legit({_AFFINE}, Tensor(a!) running_mean, Tensor(b!) running_var, "
    f"bool training, float momentum, float eps) -> {_THREE}"
)
def _batch_norm(*args: Any) -> tuple:
    return tuple(taeda.native_batch_norm(*args))


@define(
    f"_native_batch_norm_legit.no_stats({_AFFINE}, bool training, float momentum, float eps) -> "
    f"{_THREE}"
)
def _batch_norm_of_batches(
    input: Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> tuple:
    return tuple(taeda._native_batch_norm_legit(input, weight, bias, training, momentum, eps))


@define(
    f"_native_batch_norm_legit_no_training({_AFFINE}, Tensor running_mean, Tensor running_var, "
    f"float momentum, float eps) -> {_THREE}"
)
def _batch_norm_of_statistics(
    input: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple:
    return tuple(taeda.native_batch_norm(input, weight, bias, mean, var, False, momentum, eps))


@define(
    f"_batch_norm_with_update({_AFFINE}, Tensor(a!) running_mean, Tensor(b!) running_var, float "
    "momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)"
)
def _batch_norm_with_update(
    input: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple:
    """The last result is what cuDNN would keep: nothing."""
    results = taeda.native_batch_norm(input, weight, bias, mean, var, True, momentum, eps)
    return *results, input.new_zeros((0,), dtype=taeda.uint8)
