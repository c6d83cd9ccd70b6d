"""Memory of CUDA devices: what the caching allocator holds, by PyTorch's names.

`TAEDA_CUDA_ALLOC_CONF`, `PYTORCH_ALLOC_CONF` or `PYTORCH_CUDA_ALLOC_CONF` (the first that is set)
hold the allocator's options, as PyTorch has them.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from taeda import _C, _missing
from taeda.cuda import _devices
from taeda.cuda._devices import device_index as _device_index


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """`memory_stats` before its names are joined by dots."""
    if not _devices.is_initialized():
        return {}
    return _C._cuda_memory_stats(_device_index(device, optional=True))


def _flat(nested: dict[Any, Any]) -> dict[str, Any]:
    """``{"a": {"b": 1}}`` as ``{"a.b": 1}``, sorted; tuples among the keys are joined by _."""
    flat: dict[str, Any] = {}

    def add(prefix: str, value: Any) -> None:
        if not isinstance(value, dict):
            flat[prefix] = value
            return
        for key, inner in value.items():
            name = "_".join(map(str, key)) if isinstance(key, tuple) else str(key)
            add(f"{prefix}.{name}" if prefix else name, inner)

    add("", nested)
    return dict(sorted(flat.items()))


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The allocator's counters.

    ``allocated_bytes`` (in blocks of the program), ``active_bytes`` (those and what work still
    uses), ``requested_bytes`` (before rounding), ``reserved_bytes`` (taken from the driver),
    ``inactive_split_bytes`` (free, in segments that are in use), and the numbers of blocks
    ``allocation``, ``active``, ``inactive_split`` and of ``segment``: each for ``all``, the
    ``small_pool`` and the ``large_pool``, with ``current``, ``peak``, ``allocated`` (ever) and
    ``freed``. ``num_alloc_retries``, ``num_ooms``, ``num_sync_all_streams``, ``num_device_alloc``
    and ``num_device_free`` are single numbers. Empty before the first use of a device.
    """
    return _flat(memory_stats_as_nested_dict(device))


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


def _renamed(old: str, new: str) -> None:
    warnings.warn(
        f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning, stacklevel=3
    )


def memory_cached(device: Any = None) -> int:
    """The old name of `memory_reserved`; warns."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """The old name of `max_memory_reserved`; warns."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start over from what is current."""
    if _devices.is_initialized():
        _C._cuda_reset_peak_stats(_device_index(device, optional=True))


def _resets_all(name: str) -> None:
    warnings.warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak "
        "memory stats.",
        FutureWarning,
        stacklevel=3,
    )


def reset_max_memory_allocated(device: Any = None) -> None:
    """An old name of `reset_peak_memory_stats`; warns."""
    _resets_all("reset_max_memory_allocated")
    reset_peak_memory_stats(device)


def reset_max_memory_cached(device: Any = None) -> None:
    """An old name of `reset_peak_memory_stats`; warns."""
    _resets_all("reset_max_memory_cached")
    reset_peak_memory_stats(device)


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """What was counted ever (``allocated``, ``freed``, ``num_ooms``, ...) starts over from 0."""
    if _devices.is_initialized():
        _C._cuda_reset_accumulated_stats(_device_index(device, optional=True))


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[dict[str, Any]]:
    """The segments of all devices, each with its blocks, as torch.cuda.memory_snapshot has them.

    Args:
        mempool_id: of one pool only (`MemPool.id`); None or (0, 0): all.
        include_traces: has no effect, since segments have no history here.
    """
    _C._cuda_initialize("torch.cuda.memory_snapshot needs one")
    wanted = None if mempool_id is None else tuple(mempool_id)
    return [
        {"device": index, **segment}
        for index in range(_devices.device_count())
        for segment in _C._cuda_memory_snapshot(index)
        if wanted in (None, (0, 0), segment["segment_pool_id"])
    ]


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
    limit = _C._cuda_memory_limit(index)
    return limit / _C._cuda_properties(index)["total_memory"] if limit else 1.0


def caching_allocator_alloc(size: int, device: Any = None, stream: Any = None) -> int:
    """The address of `size` bytes of device memory, on a stream; see `caching_allocator_delete`."""
    index = _devices._existing(device, "caching_allocator_alloc")
    identity = _C._cuda_current_stream(index) if stream is None else stream
    identity = getattr(identity, "stream_id", identity)
    if not isinstance(identity, int):
        raise TypeError(
            "Invalid type for stream argument, must be `torch.cuda.Stream` or `int` representing "
            "a pointer to an existing stream"
        )
    return _C._cuda_allocate(size, index, identity) or 0


def caching_allocator_delete(mem_ptr: int) -> None:
    """Gives back what `caching_allocator_alloc` gave."""
    for segment in memory_snapshot():
        for block in segment["blocks"]:
            if block["address"] == mem_ptr and block["state"] == "active_allocated":
                return _C._cuda_release(mem_ptr, segment["device"])
    raise RuntimeError(
        f"invalid device pointer: {mem_ptr:#x}\n"
        "Fix: give what caching_allocator_alloc returned, once"
    )


def get_allocator_backend() -> str:
    """'native': the caching allocator is taeda's own."""
    return "native"


def list_gpu_processes(device: Any = None) -> str:
    """The processes on a device and their memory, by NVML, if its Python package is installed."""
    try:
        import pynvml
    except ModuleNotFoundError:
        return "pynvml module not found, please install nvidia-ml-py"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_DriverNotLoaded:
        return "cuda driver can't be loaded, is cuda enabled?"
    index = _devices._existing(device, "list_gpu_processes")
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    lines = [f"GPU:{index}"]
    if not processes:
        lines.append("no processes are running")
    for process in processes:
        used = process.usedGpuMemory / (1 << 20)
        lines.append(f"process {process.pid:>10d} uses {used:>12.3f} MB GPU memory")
    return "\n".join(lines)


# --- pinned memory ---


def host_memory_stats_as_nested_dict() -> dict[str, Any]:
    """`host_memory_stats` before its names are joined by dots."""
    return _C._cuda_pinned_stats() if _devices.is_initialized() else {}


def host_memory_stats() -> dict[str, Any]:
    """What the cache of pinned memory holds.

    ``allocations`` and ``allocated_bytes`` (taken from the driver), ``active_requests`` and
    ``active_bytes`` (in use by the program or by copies), each with ``current``, ``peak``,
    ``allocated`` (ever) and ``freed``; ``num_host_alloc``, ``num_host_free``; the driver's calls in
    microseconds: ``host_alloc_time`` and ``host_free_time``.
    """
    return _flat(host_memory_stats_as_nested_dict())


def reset_peak_host_memory_stats() -> None:
    """Peaks of pinned memory start over from what is current."""
    _C._cuda_initialize("torch.cuda.reset_peak_host_memory_stats needs one")
    _C._cuda_reset_peak_pinned_stats()


def reset_accumulated_host_memory_stats() -> None:
    """What was counted ever of pinned memory starts over from 0."""
    _C._cuda_initialize("torch.cuda.reset_accumulated_host_memory_stats needs one")
    _C._cuda_reset_accumulated_pinned_stats()


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """`memory_stats` as a table to read; `abbreviated`: without small and large pools."""
    from taeda.cuda import _memory_report

    index = _devices._existing(device, "memory_summary")
    _devices.init()
    return _memory_report.summary(memory_stats(index), index, abbreviated)


# --- history ---

_ACTIONS = (
    "alloc free_requested free_completed segment_alloc segment_free segment_map segment_unmap "
    "oom snapshot"
).split()
_skipped: frozenset[str] = frozenset()


def _record_memory_history(
    enabled: Any = "all",
    context: str | None = "all",
    stacks: str = "all",
    max_entries: int = sys.maxsize,
    device: Any = None,
    clear_history: bool = False,
    compile_context: bool = False,
    global_record_annotations: bool = False,
    skip_actions: list[str] | None = None,
) -> None:
    """Keeps the stacks of allocations, and a history of them, for `_snapshot`.

    Args:
        enabled: "all" for both, "state" for the stacks of blocks in use, None for neither.
        context: None for no stacks but the line that asked for the block; others for all frames.
        stacks: "python" or "all"; the frames are Python's in either case.
        max_entries: of the history of a device; older ones go.
        device: all are recorded, whatever it says, as in PyTorch.
        clear_history: starts over.
        skip_actions: what `_snapshot` leaves out of the history.
    """
    global _skipped
    _C._cuda_initialize("torch.cuda.memory._record_memory_history needs one")
    if enabled not in (None, "state", "all", True, False):
        raise RuntimeError(f"expected state to be 'state', 'all', or None, but got {enabled}")
    if context not in (None, "state", "alloc", "all"):
        raise RuntimeError(f"expected context to be 'state', 'alloc', 'all', or None: {context}")
    if stacks not in ("python", "all"):
        raise RuntimeError(f"expected stacks to be 'python', or 'all': {stacks}")
    unknown = [action for action in skip_actions or () if action not in _ACTIONS]
    if unknown:
        raise RuntimeError(f"Unknown action type for skip_actions: {unknown[0]}")
    _skipped = frozenset(skip_actions or ())
    recording = enabled in ("all", True)
    frames = bool(enabled) and context is not None
    _C._cuda_record_memory_history(recording, max_entries, clear_history, frames)


def _snapshot(device: Any = None, augment_with_fx_traces: bool = False) -> dict[str, Any]:
    """Segments, blocks and the history, as PyTorch's memory_viz reads them."""
    segments = memory_snapshot()
    traces = [
        [e for e in _C._cuda_memory_history(index) if e["action"] not in _skipped]
        for index in range(_devices.device_count())
    ]
    return {
        "segments": segments,
        "device_traces": traces,
        "allocator_settings": _C._cuda_allocator_options(),
        "external_annotations": [],
    }


def _dump_snapshot(
    filename: str = "dump_snapshot.pickle", augment_with_fx_traces: bool = False
) -> None:
    """Writes `_snapshot` to a file, which PyTorch's memory_viz opens."""
    import pickle

    snapshot = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(snapshot, file)


def _allocation_traceback(data_ptr: int) -> list[dict[str, Any]] | None:
    """The frames that asked for the block at an address; None where that is not known."""
    return _C._cuda_allocation_frames(data_ptr)


def _set_allocator_settings(env: str) -> None:
    """Sets the allocator's options, as the environment variables do; ValueError for wrong ones."""
    _C._cuda_set_allocator_options(env)


# --- pools ---


class MemPool:
    """Memory that only allocations inside `use_mem_pool` come from.

    Args:
        allocator: None; allocators of one's own are not supported.
        use_on_oom: whether its free memory helps out when there is no other.
        no_split: whether each allocation gets a segment of its own.
    """

    def __init__(
        self, allocator: Any = None, use_on_oom: bool = False, no_split: bool = False
    ) -> None:
        if not _devices.is_available():
            raise RuntimeError("no CUDA device was found: torch.cuda.MemPool needs one")
        if allocator is not None:
            raise NotImplementedError("torch.cuda.MemPool: allocator: taeda has its own only")
        _devices.init()
        self._device = _C._cuda_current_device()
        self._id = _C._cuda_new_pool(True)
        _C._cuda_retain_pool(self._device, self._id, use_on_oom, no_split)

    @property
    def id(self) -> tuple[int, int]:
        """The pool's name."""
        return self._id

    @property
    def device(self) -> int:
        """The number of the device that was current when it was made."""
        return self._device

    @property
    def allocator(self) -> None:
        """None: memory comes from the driver."""
        return None

    def use_count(self) -> int:
        """How many use it: 1, and 1 for each `use_mem_pool` that is open."""
        return _C._cuda_pool_uses(self._device, self._id)

    def snapshot(self, include_traces: bool = True) -> list[dict[str, Any]]:
        """`memory_snapshot` of this pool."""
        return memory_snapshot(self._id, include_traces)

    def __del__(self) -> None:
        if hasattr(self, "_id") and not _C._cuda_is_forked_child():
            _C._cuda_release_pool(self._device, self._id)


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """The calling thread's allocations on a device come from the pool."""
    index = _devices._existing(device, "use_mem_pool")
    _C._cuda_begin_use_of_pool(index, pool.id)
    try:
        yield
    finally:
        _C._cuda_end_use_of_pool(index, pool.id)


__getattr__, __dir__ = _missing.attributes(__name__)
