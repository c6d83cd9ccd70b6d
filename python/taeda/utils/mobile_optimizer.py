"""TorchScript for mobile devices, which taeda does not write."""

from __future__ import annotations

from enum import Enum
from typing import Any

__all__ = ["LintCode", "MobileOptimizerType", "generate_mobile_module_lints", "optimize_for_mobile"]


class LintCode(Enum):
    BUNDLED_INPUT = 1
    REQUIRES_GRAD = 2
    DROPOUT = 3
    BATCHNORM = 4


class MobileOptimizerType(Enum):
    CONV_BN_FUSION = 1
    INSERT_FOLD_PREPACK_OPS = 2
    REMOVE_DROPOUT = 3
    FUSE_ADD_RELU = 4
    HOIST_CONV_PACKED_PARAMS = 5
    VULKAN_AUTOMATIC_GPU_TRANSFER = 6


def optimize_for_mobile(*args: Any, **kwargs: Any) -> Any:
    """Not there."""
    raise NotImplementedError("optimize_for_mobile: taeda writes no TorchScript")


def generate_mobile_module_lints(script_module: Any) -> Any:
    """Not there."""
    raise NotImplementedError("generate_mobile_module_lints: taeda writes no TorchScript")
