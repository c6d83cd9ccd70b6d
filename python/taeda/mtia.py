"""There is no mtia device; what needs one raises what a PyTorch without it raises."""

from __future__ import annotations

from taeda import _missing, _no_device

_no_device.publish(
    globals(),
    "is_available is_initialized device_count memory_allocated max_memory_allocated memory_stats "
    "manual_seed manual_seed_all seed seed_all get_rng_state_all set_rng_state_all "
    "reset_peak_memory_stats is_bf16_supported",
    "current_device current_stream default_stream empty_cache get_device_capability "
    "get_device_properties get_rng_state set_rng_state init initial_seed set_device set_stream "
    "attach_out_of_memory_observer record_memory_history snapshot stream synchronize",
    _no_device.answers(__name__, RuntimeError, "Cannot execute {name}() without MTIA backend."),
)

__path__: list[str] = []  # modules in it: taeda/_missing/members.py
__getattr__, __dir__ = _missing.attributes(__name__)
