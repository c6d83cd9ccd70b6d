"""The device besides the CPU, whichever it is: CUDA, where there is one.

What needs a device raises RuntimeError where there is none.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _streams, cuda


def is_available() -> bool:
    """Whether there is an accelerator that can be used."""
    return cuda.is_available()


def device_count() -> int:
    """How many there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Any:
    """The accelerator's device without an index; None where there is none."""
    return taeda.device("cuda") if is_available() else None


def _need() -> None:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def _index(device: Any) -> int:
    _need()
    return cuda._devices.device_index(device, optional=True)


def current_device_index() -> int:
    """The number of the calling thread's current device."""
    _need()
    return cuda.current_device()


def set_device_index(device: Any) -> None:
    """Makes a device the calling thread's current one."""
    cuda.set_device(_index(device))


current_device_idx, set_device_idx = current_device_index, set_device_index


def current_stream(device: Any = None) -> Any:
    """The calling thread's current stream of a device."""
    index = _index(device)
    return _streams._stream_of(index, taeda._C._cuda_current_stream(index))


def set_stream(stream: Any) -> None:
    """Makes a stream, and its device, current."""
    if not isinstance(stream, taeda.Stream):
        raise TypeError(f"set_stream(): expected a torch.Stream, got {type(stream).__name__}")
    _need()
    if stream.device_type != 1:
        raise RuntimeError(
            f"set_stream(): the accelerator is cuda, got a stream of {stream.device}"
        )
    cuda.set_stream(stream)


def synchronize(device: Any = None) -> None:
    """Waits until all work of a device is done."""
    cuda.synchronize(_index(device))


def get_device_capability(device: Any = None) -> dict[str, Any]:
    """What a device can compute with: ``{"supported_dtypes": {...}}``."""
    _index(device)
    return {"supported_dtypes": {d for d in vars(taeda).values() if isinstance(d, taeda.dtype)}}


class device_index:
    """Context manager: the current device, by its number; None changes nothing."""

    def __init__(self, device: int | None) -> None:
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            _need()
            self.prev_idx = cuda.current_device()
            cuda.set_device(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx is not None:
            cuda.set_device(self.prev_idx)


def empty_cache() -> None:
    """Gives memory that is kept for reuse back to the driver."""
    _need()
    cuda.empty_cache()


def empty_host_cache() -> None:
    """Gives pinned memory that is kept for reuse back to the driver."""
    _need()
    taeda._C._cuda_empty_pinned_cache()


def memory_stats(device: Any = None) -> dict[str, int]:
    """The allocator's counters: `torch.cuda.memory_stats`."""
    return cuda.memory_stats(_index(device))


def memory_allocated(device: Any = None) -> int:
    """Bytes in blocks that are in use."""
    return cuda.memory_allocated(_index(device))


def max_memory_allocated(device: Any = None) -> int:
    """The most that `memory_allocated` was since the start or `reset_peak_memory_stats`."""
    return cuda.max_memory_allocated(_index(device))


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the driver, in use or kept for reuse."""
    return cuda.memory_reserved(_index(device))


def max_memory_reserved(device: Any = None) -> int:
    """The most that `memory_reserved` was since the start or `reset_peak_memory_stats`."""
    return cuda.max_memory_reserved(_index(device))


def get_memory_info(device: Any = None) -> tuple[int, int]:
    """(free, total) bytes of a device."""
    return cuda.mem_get_info(_index(device))


def reset_peak_memory_stats(device: Any = None) -> None:
    """Peaks start over from what is current."""
    cuda.reset_peak_memory_stats(_index(device))


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """What was counted ever starts over from 0."""
    cuda.reset_accumulated_memory_stats(_index(device))


class Graph:
    """Work of the current stream that can be replayed; captured by a ``with`` block.

    >>> stream, graph = torch.Stream("cuda"), torch.accelerator.Graph()  # doctest: +SKIP
    >>> with stream, graph:  # doctest: +SKIP
    ...     x += 1
    >>> graph.replay()  # doctest: +SKIP

    Args:
        keep_graph: keeps the graph beside what is launched, for `debug_dump`; `instantiate` is then
            called by the program, or by the first `replay`.
        pool: memory that is shared with other graphs: `other.pool()`.
        capture_error_mode: see `torch.cuda.CUDAGraph.capture_begin`; "default" is "global".
    """

    def __init__(
        self,
        keep_graph: bool = False,
        *,
        pool: tuple[int, int] | None = None,
        capture_error_mode: str = "default",
    ) -> None:
        _need()
        self._graph = cuda.CUDAGraph(keep_graph)
        self.graph_pool = pool
        self.capture_error_mode = capture_error_mode

    def _mode(self) -> str:
        return "global" if self.capture_error_mode == "default" else self.capture_error_mode

    def capture_begin(self) -> None:
        """Captures the current stream from now on, which must not be the default one."""
        self._graph.capture_begin(self.graph_pool, self._mode())

    def capture_end(self) -> None:
        """Ends the capture, on the stream that it began on."""
        self._graph.capture_end()

    def instantiate(self) -> None:
        """Makes what is launched of the graph; needed once, where `keep_graph` is set."""
        self._graph.instantiate()

    def replay(self) -> None:
        """Queues the captured work on the current stream."""
        self._graph.replay()

    def reset(self) -> None:
        """Drops what was captured; then it may capture anew."""
        self._graph.reset()

    def pool(self) -> tuple[int, int]:
        """The name of the pool that the graph's memory comes from."""
        return self._graph.pool()

    def enable_debug_mode(self) -> None:
        """Keeps the graph for `debug_dump`; to be called before the capture."""
        self._graph.enable_debug_mode()

    def debug_dump(self, path: str) -> None:
        """Writes the graph to a file in Graphviz's language."""
        self._graph.debug_dump(path)

    def __enter__(self) -> None:
        stream = cuda.current_stream()
        self._block = cuda.graph(self._graph, self.graph_pool, stream, self._mode())
        self._block.__enter__()

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self._block.__exit__(kind, value, traceback)


__path__: list[str] = []  # modules in it: taeda/_missing/private.py
