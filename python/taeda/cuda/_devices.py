"""Devices: how many there are, the thread's current one, what they are."""

from __future__ import annotations

import uuid as _uuid
from typing import Any

import taeda
from taeda import _C


def device_count() -> int:
    """How many CUDA devices can be used; 0 without a driver."""
    return _C._cuda_device_count()


def is_available() -> bool:
    """Whether there is a CUDA device that can be used."""
    return device_count() > 0


def is_initialized() -> bool:
    """Whether this process works with a CUDA device already."""
    return _C._cuda_is_initialized()


def init() -> None:
    """Starts the work with CUDA; what needs a device does so itself."""
    _C._cuda_initialize("torch.cuda.init needs one")


def device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number that a device, a string or a number names; None, and "cuda", the current one.

    ValueError for other kinds of devices, unless `allow_cpu`: then -1.
    """
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str):
        device = taeda.device(device)
    if isinstance(device, taeda.device):
        if allow_cpu and device.type == "cpu":
            return -1
        if device.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {device}")
        if device.index is not None:
            return device.index
    elif device is not None or not optional:
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return _C._cuda_current_device()


def _existing(device: Any, name: str) -> int:
    """The number of a device that exists, for the function `name`."""
    _C._cuda_initialize(f"torch.cuda.{name} needs one")
    return device_index(device, optional=True)


def current_device() -> int:
    """The number of the calling thread's current device."""
    _C._cuda_initialize("torch.cuda.current_device needs one")
    return _C._cuda_current_device()


def set_device(device: Any) -> None:
    """Makes a device the calling thread's current one; a negative number changes nothing."""
    index = device_index(device)
    if index >= 0:
        _C._cuda_initialize("torch.cuda.set_device needs one")
        _C._cuda_set_device(index)


def synchronize(device: Any = None) -> None:
    """Waits until all work of a device is done."""
    _C._cuda_synchronize(_existing(device, "synchronize"))


def preload(*patterns: str, device: Any = None) -> int:
    """Loads kernels, so that no operator's first call waits for the driver to compile one.

    Of those whose names match one of the patterns (``*``, ``?`` as in file names), or of all. A
    kernel is named for what it computes, then the type that it computes in or its arrays have:
    ``add_f32``, ``gelu_bf16``, ``reduce_sum_f32_any``. Returns how many there were; 0 where this
    build has none. The driver keeps what it has compiled, so the next process starts faster, too.

        taeda.cuda.preload("*_f32", "*_f32_any")
    """
    from fnmatch import fnmatchcase

    index = _existing(device, "preload")
    known = _C._cuda_kernel_names()
    names = [n for n in known if not patterns or any(fnmatchcase(n, p) for p in patterns)]
    _C._cuda_preload(index, names)
    return len(names)


class device:
    """Context manager: the current device; None and negative numbers change nothing.

    >>> with taeda.cuda.device(-1):
    ...     pass
    """

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else device_index(device, optional=True)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx < 0:
            return
        if not is_available():
            raise RuntimeError("no CUDA device was found: torch.cuda.device needs one")
        self.prev_idx = _C._cuda_current_device()
        _C._cuda_set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx >= 0:
            _C._cuda_set_device(self.prev_idx)


class device_of(device):
    """Context manager: the device of a tensor; tensors of other devices change nothing."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class _CudaDeviceProperties:
    """What a device is: `name`, `major`, `minor`, `total_memory`, `multi_processor_count`, ..."""

    def __init__(self, values: dict[str, Any]) -> None:
        raw = values.pop("uuid")
        self.__dict__.update(values)
        self.uuid = _uuid.UUID(bytes=raw)
        self.gcnArchName = self.name

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int
    L2_cache_size: int

    def __repr__(self) -> str:
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory >> 20}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"L2_cache_size={self.L2_cache_size >> 20}MB)"
        )


def _checked(index: int, what: str) -> int:
    """The number, if there is such a device."""
    if not 0 <= index < device_count():
        raise AssertionError(f"Invalid {what} id {index}: there are {device_count()} devices")
    return index


def _properties(device: Any, name: str) -> dict[str, Any]:
    return _C._cuda_properties(_checked(_existing(device, name), "device"))


def get_device_properties(device: Any = None) -> _CudaDeviceProperties:
    """What a device is."""
    return _CudaDeviceProperties(_properties(device, "get_device_properties"))


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return _properties(device, "get_device_name")["name"]


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device: (major, minor)."""
    values = _properties(device, "get_device_capability")
    return values["major"], values["minor"]


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device can use the other's memory directly."""
    index = _checked(_existing(device, "can_device_access_peer"), "device")
    peer = _checked(device_index(peer_device, optional=True), "peer device")
    return _C._cuda_can_access_peer(index, peer)


def get_arch_list() -> list[str]:
    """The architectures that kernels were compiled for: none are in this build."""
    return []


def get_gencode_flags() -> str:
    """The compiler's flags for `get_arch_list`."""
    return ""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes with bfloat16."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the current device computes with TF32."""
    return is_available() and get_device_capability()[0] >= 8
