"""What NVIDIA's management library (NVML, libnvidia-ml.so.1 of the driver) says of a device.

The library is opened when the first question is asked; no Python package is needed for it.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any
from uuid import UUID

from taeda import _C
from taeda.cuda import _devices

__all__ = [
    "clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization",
]  # fmt: skip

_GPU_TEMPERATURE = 0  # NVML_TEMPERATURE_GPU
_SM_CLOCK = 1  # NVML_CLOCK_SM


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_ulonglong) for name in ("total", "free", "used"))


def _opened() -> Any:
    return ctypes.CDLL("libnvidia-ml.so.1")


@cache
def _library() -> Any:
    try:
        library = _opened()
    except OSError as error:
        raise RuntimeError(
            f"NVML, which comes with NVIDIA's driver, cannot be opened: {error}"
        ) from None
    library.nvmlErrorString.restype = ctypes.c_char_p
    _check(library, library.nvmlInit_v2())
    return library


def _check(library: Any, status: int) -> None:
    if status:
        raise RuntimeError(f"NVML: {library.nvmlErrorString(status).decode()}")


def _ask(function: str, device: Any, name: str, *arguments: Any) -> None:
    """Calls a function of a device, which writes to the last argument."""
    number = UUID(bytes=_C._cuda_properties(_devices._existing(device, name))["uuid"])
    uuid, library, handle = f"GPU-{number}".encode(), _library(), ctypes.c_void_p()
    _check(library, library.nvmlDeviceGetHandleByUUID(uuid, ctypes.byref(handle)))
    *given, result = arguments
    _check(library, getattr(library, function)(handle, *given, ctypes.byref(result)))


def _number(function: str, device: Any, name: str, *arguments: Any) -> int:
    result = ctypes.c_uint()
    _ask(function, device, name, *arguments, result)
    return result.value


def _rates(device: Any, name: str) -> _Utilization:
    rates = _Utilization()
    _ask("nvmlDeviceGetUtilizationRates", device, name, rates)
    return rates


def utilization(device: Any = None) -> int:
    """Percent of the last sample period in which a kernel ran on the device."""
    return _rates(device, "utilization").gpu


def memory_usage(device: Any = None) -> int:
    """Percent of the last sample period in which the device's memory was read or written."""
    return _rates(device, "memory_usage").memory


def device_memory_used(device: Any = None) -> int:
    """Bytes of the device's memory that are taken, by whichever process."""
    memory = _Memory()
    _ask("nvmlDeviceGetMemoryInfo", device, "device_memory_used", memory)
    return memory.used


def temperature(device: Any = None) -> int:
    """The chip's temperature in degrees Celsius."""
    return _number("nvmlDeviceGetTemperature", device, "temperature", _GPU_TEMPERATURE)


def power_draw(device: Any = None) -> int:
    """The power that the device takes, in milliwatts."""
    return _number("nvmlDeviceGetPowerUsage", device, "power_draw")


def clock_rate(device: Any = None) -> int:
    """The clock of the multiprocessors, in MHz."""
    return _number("nvmlDeviceGetClockInfo", device, "clock_rate", _SM_CLOCK)
