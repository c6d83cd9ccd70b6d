"""There is no xpu device; what needs one raises what a PyTorch without it raises."""

from __future__ import annotations

from taeda import _missing, _no_device

_no_device.publish(
    globals(),
    "is_available is_initialized is_bf16_supported is_tf32_supported device_count empty_cache "
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats "
    "memory_stats_as_nested_dict manual_seed manual_seed_all seed seed_all get_rng_state_all "
    "set_rng_state_all reset_peak_memory_stats reset_accumulated_memory_stats get_arch_list "
    "memory_snapshot",
    "current_device current_stream get_device_capability get_device_name get_device_properties "
    "get_rng_state set_rng_state init initial_seed mem_get_info set_device set_stream synchronize "
    "get_per_process_memory_fraction set_per_process_memory_fraction can_device_access_peer "
    "clock_rate device_memory_used get_stream_from_external memory_usage power_draw temperature "
    "utilization",
    _no_device.answers(__name__, AssertionError, "Torch not compiled with XPU enabled"),
)


default_generators: tuple = ()
__path__: list[str] = []  # modules in it: taeda/_missing/members.py


def is_current_stream_capturing() -> bool:
    """RuntimeError: there is no stream."""
    raise RuntimeError("torch.xpu.is_current_stream_capturing: taeda has no XPU devices")


__getattr__, __dir__ = _missing.attributes(__name__)
