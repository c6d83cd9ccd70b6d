"""Exchange of tensors through DLPack."""

from __future__ import annotations

import enum
from typing import Any

from taeda import Tensor, from_dlpack

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """Kinds of devices, by the numbers of DLPack's ABI."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule on the tensor's memory, to be taken once."""
    if not isinstance(tensor, Tensor):
        name = type(tensor).__name__
        raise TypeError(f"to_dlpack(): argument 'tensor' (position 1) must be Tensor, not {name}")
    return tensor.detach().__dlpack__()
