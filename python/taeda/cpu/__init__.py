"""The CPU as a device, as torch.cpu has it, and what its memory allocator does.

``torch.cpu`` says nothing about memory; the functions here have the names and results that
``torch.cuda`` gives to the same things.

Counted are the storages above 32 KiB, which come from the caching allocator. It reserves segments
from the system and cuts blocks from them; blocks that threads keep for reuse count as allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _C, _missing


def is_available() -> bool:
    """True: this is the CPU."""
    return True


def is_initialized() -> bool:
    """True: nothing has to be set up."""
    return True


def device_count() -> int:
    """1: all cores are one device."""
    return 1


def current_device() -> str:
    return "cpu"


def set_device(device: Any) -> None:
    """There is but one."""


def synchronize(device: Any = None) -> None:
    """Nothing is queued on the CPU."""


class Stream:
    """The CPU has no streams: this one orders nothing, for programs that run on any device."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Nothing is queued on the CPU."""

    def record_event(self) -> None:
        """Nothing is queued on the CPU."""

    def wait_event(self, event: Any) -> None:
        """Nothing is queued on the CPU."""


class Event:
    """A point in the work of the CPU, which is always done."""

    def query(self) -> bool:
        """True: nothing is queued on the CPU."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing is queued on the CPU."""

    def synchronize(self) -> None:
        """Nothing is queued on the CPU."""

    def wait(self, stream: Any = None) -> None:
        """Nothing is queued on the CPU."""


_current_stream = Stream()


def current_stream(device: Any = None) -> Stream:
    """The stream of the innermost `stream` block."""
    return _current_stream


class StreamContext:
    """Context manager: what `current_stream` says inside; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        global _current_stream
        self._outer = _current_stream
        if self.stream is not None:
            _current_stream = self.stream

    def __exit__(self, *exc: object) -> None:
        global _current_stream
        _current_stream = self._outer


def stream(stream: Stream | None) -> StreamContext:
    """``with torch.cpu.stream(s):`` the block runs as it is."""
    return StreamContext(stream)


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """The allocator's counters: `memory_stats` before its names are joined by dots."""
    stats = _C._cpu_memory_stats()
    return {k: {"all": v} if isinstance(v, dict) else v for k, v in stats.items()}


def memory_stats(device: Any = None) -> dict[str, int]:
    """The allocator's counters, by names as torch.cuda.memory_stats has them.

    ``allocated_bytes``, ``requested_bytes`` (before rounding), ``reserved_bytes`` (taken from the
    system), ``allocation`` (blocks) and ``segment`` have ``.all.current``, ``.all.peak``,
    ``.all.allocated`` (ever) and ``.all.freed``. Single numbers are ``num_alloc_retries`` (times
    that cached memory was given back to make room), ``num_ooms``, ``num_device_alloc`` and
    ``num_device_free`` (segments), ``live_bytes`` (all storages above 64 bytes, small ones
    included) and ``limit_bytes``.

    >>> taeda.cpu.memory_stats()["num_ooms"]
    0
    """
    flat: dict[str, int] = {}

    def add(prefix: str, value: Any) -> None:
        if not isinstance(value, dict):
            flat[prefix] = value
            return
        for name, inner in value.items():
            add(f"{prefix}.{name}", inner)

    for name, value in memory_stats_as_nested_dict().items():
        add(name, value)
    return dict(sorted(flat.items()))


def memory_allocated(device: Any = None) -> int:
    """Bytes in blocks that are in use."""
    return memory_stats()["allocated_bytes.all.current"]


def max_memory_allocated(device: Any = None) -> int:
    """The most that `memory_allocated` was since the start or `reset_peak_memory_stats`."""
    return memory_stats()["allocated_bytes.all.peak"]


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the system, in use or kept for reuse."""
    return memory_stats()["reserved_bytes.all.current"]


def max_memory_reserved(device: Any = None) -> int:
    """The most that `memory_reserved` was since the start or `reset_peak_memory_stats`."""
    return memory_stats()["reserved_bytes.all.peak"]


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start over from what is current."""
    _C._cpu_reset_peak_memory_stats()


def memory_snapshot() -> list[dict[str, Any]]:
    """The allocator's segments by address, each with its blocks.

    A segment has ``address``, ``total_size``, ``allocated_size``, ``stream`` (0), ``segment_type``
    ("small" or "large") and ``blocks``; a block has ``address``, ``size``, ``requested_size`` and
    ``state`` ("active_allocated" or "inactive").
    """
    return _C._cpu_memory_snapshot()


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the system."""
    _C._cpu_empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """(what the allocator may still hand out, its limit) in bytes.

    The limit is the machine's memory or the least that the process's cgroups allow.
    """
    stats = memory_stats()
    limit = stats["limit_bytes"]
    return max(0, limit - stats["allocated_bytes.all.current"]), limit


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Lets the allocator reserve at most this part of what the machine or cgroup has.

    More raises OutOfMemoryError. 1.0 takes the restriction away.
    """
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _C._cpu_set_memory_limit(0)
    if fraction < 1:
        _C._cpu_set_memory_limit(max(1, int(memory_stats()["limit_bytes"] * fraction)))


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """`memory_stats` as a table to read."""
    stats = memory_stats()
    rows = [f"{'':24}{'current':>14}{'peak':>14}{'ever':>16}{'freed':>16}"]
    for name in ("allocated_bytes", "requested_bytes", "reserved_bytes", "allocation", "segment"):
        values = [stats[f"{name}.all.{k}"] for k in ("current", "peak", "allocated", "freed")]
        rows.append(f"{name:24}{values[0]:14,}{values[1]:14,}{values[2]:16,}{values[3]:16,}")
    if not abbreviated:
        rows += [f"{k:24}{v:14,}" for k, v in stats.items() if "." not in k]
    return "\n".join(rows)


if TYPE_CHECKING:
    from taeda.cpu import amp as amp
    from taeda.cpu._capabilities import get_capabilities as get_capabilities
else:

    def __getattr__(name: str) -> Any:
        """``torch.cpu.amp`` and ``get_capabilities`` without an import of their own."""
        if name == "amp":
            import taeda.cpu.amp as found
        elif name == "get_capabilities":
            from taeda.cpu._capabilities import get_capabilities as found
        else:
            return _missing.attribute(__name__, name)

        globals()[name] = found
        return found

    del TYPE_CHECKING


def __dir__() -> list[str]:
    return sorted({*globals(), "amp", "get_capabilities", *_missing.names(__name__)})
