"""Memory of CUDA devices: what the caching allocator holds, by PyTorch's names."""

from __future__ import annotations

from typing import Any

from taeda import _C, _missing
from taeda.cuda import _devices
from taeda.cuda._devices import device_index as _device_index

# PyTorch's name of a counter -> the allocator's.
_LEVELS = {
    "allocation": "allocation",
    "segment": "segment",
    "allocated_bytes": "allocated_bytes",
    "reserved_bytes": "reserved_bytes",
    "requested_bytes": "requested_bytes",
}


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """`memory_stats` before its names are joined by dots."""
    if not _devices.is_initialized():
        return {}
    stats = _C._cuda_memory_stats(_device_index(device, optional=True))
    nested: dict[str, Any] = {ours: {"all": stats[theirs]} for ours, theirs in _LEVELS.items()}
    # In use by the program or by work that has not ended.
    allocated, pending = stats["allocated_bytes"], stats["pending_bytes"]
    nested["active_bytes"] = {"all": {key: allocated[key] + pending[key] for key in allocated}}
    for name in ("num_alloc_retries", "num_ooms", "num_device_alloc", "num_device_free"):
        nested[name] = stats[name]
    return nested


def memory_stats(device: Any = None) -> dict[str, int]:
    """The allocator's counters.

    ``allocated_bytes`` (in blocks of the program), ``active_bytes`` (those and what work still
    uses), ``requested_bytes`` (before rounding), ``reserved_bytes`` (taken from the driver),
    ``allocation`` (blocks) and ``segment``, each with ``.all.current``, ``.all.peak``,
    ``.all.allocated`` (ever) and ``.all.freed``; ``num_alloc_retries``, ``num_ooms``,
    ``num_device_alloc`` and ``num_device_free``. Empty before the first use of a device.
    """
    flat: dict[str, int] = {}
    for name, value in memory_stats_as_nested_dict(device).items():
        if isinstance(value, dict):
            flat.update((f"{name}.all.{key}", count) for key, count in value["all"].items())
        else:
            flat[name] = value
    return dict(sorted(flat.items()))


def memory_allocated(device: Any = None) -> int:
    """Bytes in blocks that are in use."""
    return memory_stats(device).get("allocated_bytes.all.current", 0)


def max_memory_allocated(device: Any = None) -> int:
    """The most that `memory_allocated` was since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("allocated_bytes.all.peak", 0)


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the driver, in use or kept for reuse."""
    return memory_stats(device).get("reserved_bytes.all.current", 0)


def max_memory_reserved(device: Any = None) -> int:
    """The most that `memory_reserved` was since the start or `reset_peak_memory_stats`."""
    return memory_stats(device).get("reserved_bytes.all.peak", 0)


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start over from what is current."""
    if _devices.is_initialized():
        _C._cuda_reset_peak_stats(_device_index(device, optional=True))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """What was counted ever (``allocated``, ``freed``, ``num_ooms``, ...) starts over from 0."""
    if _devices.is_initialized():
        _C._cuda_reset_accumulated_stats(_device_index(device, optional=True))


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of all devices, each with its blocks, as torch.cuda.memory_snapshot has them."""
    _C._cuda_initialize("torch.cuda.memory_snapshot needs one")
    segments = []
    for index in range(_devices.device_count()):
        for segment in _C._cuda_memory_snapshot(index):
            segments.append({"device": index, **segment})
    return segments


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the driver."""
    if not _devices.is_initialized():
        return
    for index in range(_devices.device_count()):
        _C._cuda_empty_cache(index)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a device, as its driver says."""
    return _C._cuda_memory_info(_devices._existing(device, "mem_get_info"))


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Lets the allocator reserve at most this part of a device's memory."""
    index = _devices._existing(device, "set_per_process_memory_fraction")
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    total = _C._cuda_properties(index)["total_memory"]
    _C._cuda_set_memory_limit(index, 0 if fraction == 1 else max(1, int(total * fraction)))


def get_per_process_memory_fraction(device: Any = None) -> float:
    """The part of a device's memory that the allocator may reserve."""
    index = _devices._existing(device, "get_per_process_memory_fraction")
    limit = _C._cuda_memory_stats(index)["limit_bytes"]
    return limit / _C._cuda_properties(index)["total_memory"] if limit else 1.0


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of `size` bytes of device memory, on a stream; see `caching_allocator_delete`."""
    index = _devices._existing(device, "caching_allocator_alloc")
    identity = _C._cuda_current_stream(index) if stream is None else stream
    return _C._cuda_allocate(size, index, getattr(identity, "stream_id", identity)) or 0


def caching_allocator_delete(mem_ptr: int) -> None:
    """Gives back what `caching_allocator_alloc` gave."""
    for segment in memory_snapshot():
        if segment["address"] <= mem_ptr < segment["address"] + segment["total_size"]:
            return _C._cuda_release(mem_ptr, segment["device"])
    raise ValueError(f"caching_allocator_delete: {mem_ptr:#x} is not an allocated block")


def get_allocator_backend() -> str:
    """'native': the caching allocator is taeda's own."""
    return "native"


def list_gpu_processes(device: Any = None) -> str:
    """Other processes on the device are not known: NVML is not used."""
    return "pynvml module not found, please install nvidia-ml-py"


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """What the cache of pinned memory holds."""
    return _C._cuda_pinned_stats() if _devices.is_initialized() else {}


host_memory_stats = host_memory_stats_as_nested_dict


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """`memory_stats` as a table to read."""
    _devices._existing(device, "memory_summary")
    _devices.init()
    stats = memory_stats(device)
    rows = [f"{'':24}{'current':>14}{'peak':>14}{'ever':>16}{'freed':>16}"]
    for name in (*_LEVELS, "active_bytes"):
        values = [stats[f"{name}.all.{k}"] for k in ("current", "peak", "allocated", "freed")]
        rows.append(f"{name:24}{values[0]:14,}{values[1]:14,}{values[2]:16,}{values[3]:16,}")
    if not abbreviated:
        rows += [f"{k:24}{v:14,}" for k, v in stats.items() if "." not in k]
    return "\n".join(rows)


__getattr__, __dir__ = _missing.attributes(__name__)
