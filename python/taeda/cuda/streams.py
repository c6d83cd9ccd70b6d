"""Streams, which run work in order, and events, which mark points in it."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C, _streams
from taeda.cuda import _devices


class Stream(_streams.Stream):
    """A queue of work on a device, which runs beside other streams.

    Streams come from a pool of 32 a priority; what they run is not ordered with the default stream.

    Args:
        device: the device; None for the current one.
        priority: 0, or down to -3 for what should go first.
    """

    def __init__(self, device: Any = None, priority: int = 0, **ids: Any) -> None:
        if not _devices.is_available():
            raise RuntimeError("torch.cuda.Stream requires CUDA support: no CUDA device was found")
        if ids:
            super().__init__(**{"device_type": 1, **ids})
        else:
            index = _devices.device_index(device, optional=True)
            super().__init__(taeda.device("cuda", index), priority=priority)

    @property
    def cuda_stream(self) -> int:
        """The driver's handle."""
        return self.native_handle

    @property
    def priority(self) -> int:
        return _C._cuda_stream_priority(self.device_index, self.stream_id)

    @staticmethod
    def priority_range() -> tuple[int, int]:
        """The least and the greatest priority: (0, -3)."""
        return 0, -3

    def wait_event(self, event: _streams.Event) -> None:
        """What is queued from now on waits for the event."""
        event.wait(self)

    def wait_stream(self, stream: _streams.Stream) -> None:
        """What is queued from now on waits for all that `stream` has been given."""
        self.wait_event(stream.record_event())

    def record_event(self, event: _streams.Event | None = None) -> _streams.Event:
        """Marks the work that was queued so far."""
        if event is None:
            event = Event()
        event.record(self)
        return event

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_stream)

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self.cuda_stream

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and super().__eq__(other)

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, by the driver's handle; that library keeps it alive."""

    def __init__(self, stream_ptr: int, device: Any = None, **ids: Any) -> None:
        index = _devices._existing(device, "ExternalStream")
        super().__init__(stream_id=_C._cuda_stream_external(index, stream_ptr), device_index=index)


class Event(_streams.Event):
    """A point in the work of a stream.

    Args:
        enable_timing: whether it notes the time, for `elapsed_time`.
        blocking: whether `synchronize` lets the processor sleep.
        interprocess: not supported.
        external: whether a graph records it, or waits for it, each time that it runs; not
            supported.
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        self._type, self._timing = "cuda", enable_timing
        self._event = _C._CudaEventBase(enable_timing, blocking, interprocess)
        if external:
            raise NotImplementedError(
                "torch.cuda.Event: external: captured graphs neither record events of the program "
                "nor wait for them; record the event after CUDAGraph.replay()"
            )

    @property
    def device(self) -> taeda.device | None:
        """The device that it was recorded on first."""
        return super().device if self.cuda_event else None

    @property
    def cuda_event(self) -> int:
        """The driver's handle; 0 before it is recorded."""
        return self._event.cuda_event

    def _elapsed(self, end_event: _streams.Event) -> float:
        """AcceleratorError while the work is not done, as the driver says it."""
        return self._event.elapsed_time(end_event._event)

    def ipc_handle(self) -> Any:
        """NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("torch.cuda.Event.ipc_handle: interprocess events")

    @classmethod
    def from_ipc_handle(cls, device: Any, handle: Any) -> Any:
        """NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("torch.cuda.Event.from_ipc_handle: interprocess events")

    @property
    def _as_parameter_(self) -> Any:
        import ctypes

        return ctypes.c_void_p(self.cuda_event)

    def __repr__(self) -> str:
        if not self.cuda_event:
            return "<torch.cuda.Event uninitialized>"
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


def current_stream(device: Any = None) -> Stream:
    """The calling thread's current stream of a device."""
    index = _devices._existing(device, "current_stream")
    return Stream(stream_id=_C._cuda_current_stream(index), device_index=index)


def default_stream(device: Any = None) -> Stream:
    """The default stream of a device."""
    index = _devices._existing(device, "default_stream")
    return Stream(stream_id=0, device_index=index)


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """A stream that another library made, by the driver's handle."""
    return ExternalStream(data_ptr, device)


def set_stream(stream: _streams.Stream | None) -> None:
    """Makes a stream, and its device, current; `with torch.cuda.stream(s):` also restores."""
    if stream is not None:
        _C._cuda_set_current_stream(stream.device_index, stream.stream_id)
        _C._cuda_set_device(stream.device_index)


class StreamContext:
    """Context manager: a stream, and its device, are current; None changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        stream = self.stream
        if stream is None:
            return
        if not isinstance(stream, Stream):
            raise TypeError(f"torch.cuda.stream: expected a Stream, got {type(stream).__name__}")
        self._device = _C._cuda_current_device()
        self._id = _C._cuda_current_stream(stream.device_index)
        set_stream(stream)

    def __exit__(self, *exc: object) -> None:
        if self.stream is not None:
            _C._cuda_set_current_stream(self.stream.device_index, self._id)
            _C._cuda_set_device(self._device)


def stream(stream: Stream | None) -> StreamContext:
    """``with torch.cuda.stream(s):`` what is queued inside goes to the stream `s`."""
    return StreamContext(stream)
