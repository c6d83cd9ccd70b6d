"""Lists of tensors by device and dtype, for functions over many tensors at once."""

from __future__ import annotations

from typing import Any

import taeda

__all__: list[str] = []


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Where optimizers take ``torch._foreach_...`` without being asked to."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Where optimizers have fused steps."""
    return ["cpu", "cuda"]


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list], with_indices: bool = False
) -> dict[tuple, tuple[list[list], list[int]]]:
    """{(device, dtype) of the first list's tensors: (the lists' items there, their indices)}.

    >>> from torch.utils._foreach_utils import _group_tensors_by_device_and_dtype
    >>> lists = [[torch.ones(1), torch.ones(1).double()], [1, 2]]
    >>> for (device, dtype), (group, where) in _group_tensors_by_device_and_dtype(
    ...     lists, with_indices=True).items():
    ...     print(dtype, group[1], where)
    torch.float32 [1] [0]
    torch.float64 [2] [1]
    """
    rows: dict[tuple, list[int]] = {}
    for i, tensor in enumerate(tensorlistlist[0]):
        rows.setdefault((tensor.device, tensor.dtype), []).append(i)
    return {
        key: ([[one[i] for i in where] if one else [] for one in tensorlistlist], where)
        for key, where in rows.items()
    }


def _device_has_foreach_support(device: Any) -> bool:
    return device.type in [*_get_foreach_kernels_supported_devices(), "cpu"]


def _has_foreach_support(tensors: list, device: Any) -> bool:
    """Whether tensors on a device can be given to ``torch._foreach_...``."""
    return _device_has_foreach_support(device) and all(
        tensor is None or type(tensor) in (taeda.Tensor, taeda.nn.Parameter) for tensor in tensors
    )
