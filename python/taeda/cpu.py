"""The CPU as a device: one, always there, whose work is done when a call returns.

What PyTorch's ``torch.cpu`` has, and the memory that the caching allocator keeps.
"""

from __future__ import annotations

import contextlib
from typing import Any

from taeda import _C


def is_available() -> bool:
    return True


def is_initialized() -> bool:
    return True


def device_count() -> int:
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one CPU device."""


def synchronize(device: Any = None) -> None:
    """Does nothing: every call has finished its work when it returns."""


def stream(stream: Any) -> contextlib.AbstractContextManager:
    """A context that changes nothing: the CPU has no streams."""
    return contextlib.nullcontext(stream)


def empty_cache() -> None:
    """Gives memory that no tensor uses back to the system.

    >>> torch.cpu.empty_cache()
    """
    _C._cpu_empty_cache()


def memory_stats() -> dict[str, int]:
    """Bytes in use by tensors, and those that the caching allocator has handed out and holds.

    >>> sorted(torch.cpu.memory_stats())[:2]
    ['allocated_bytes', 'live_bytes']
    """
    return _C._cpu_memory_stats()
