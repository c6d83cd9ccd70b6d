"""There is no xpu device; what needs one raises what a PyTorch without it raises."""

from __future__ import annotations

from taeda import _missing, _no_device

_no_device.publish(
    globals(),
    "is_available is_initialized is_bf16_supported is_tf32_supported device_count empty_cache "
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_stats "
    "memory_stats_as_nested_dict manual_seed manual_seed_all seed seed_all get_rng_state_all "
    "set_rng_state_all reset_peak_memory_stats get_arch_list",
    "current_device current_stream get_device_capability get_device_name get_device_properties "
    "get_rng_state set_rng_state init initial_seed mem_get_info set_device set_stream synchronize "
    "get_per_process_memory_fraction set_per_process_memory_fraction",
    _no_device.answers(__name__, AssertionError, "Torch not compiled with XPU enabled"),
)


def is_current_stream_capturing() -> bool:
    """RuntimeError: there is no stream."""
    raise RuntimeError("torch.xpu.is_current_stream_capturing: taeda has no XPU devices")


__getattr__, __dir__ = _missing.attributes(__name__)
