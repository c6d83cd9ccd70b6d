"""There is no mps device; what needs one raises what a PyTorch without it raises."""

from __future__ import annotations

from taeda import _missing, _no_device

_no_device.publish(
    globals(),
    "is_available device_count manual_seed",
    "compile_shader load_metallib current_allocated_memory driver_allocated_memory get_rng_state "
    "set_rng_state recommended_max_memory seed set_per_process_memory_fraction synchronize",
    _no_device.answers(__name__, RuntimeError, "Cannot execute {name}() without MPS backend."),
)


def empty_cache() -> None:
    """Nothing is cached."""


__path__: list[str] = []  # modules in it: taeda/_missing/members.py
__getattr__, __dir__ = _missing.attributes(__name__)
