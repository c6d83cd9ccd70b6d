"""Streams and events of any device: `torch.Stream`, `torch.Event`.

A stream runs work in order, an event marks a point in it. `torch.cuda.Stream` and
`torch.cuda.Event` are the same for CUDA devices, with more to ask. The CPU and meta devices have
nothing queued: their streams are always done, and events cannot be recorded on them.
"""

from __future__ import annotations

from typing import Any

import taeda
from taeda import _C

# PyTorch's numbers of device types (c10::DeviceType).
_NUMBERS = {"cpu": 0, "cuda": 1, "meta": 11}
_TYPES = {number: name for name, number in _NUMBERS.items()}


def _device_of(device: Any) -> tuple[str, int]:
    """The type and number that an argument names; None: the accelerator, or the CPU."""
    if device is None:
        if not _C._cuda_device_count():
            return "cpu", -1
        return "cuda", _C._cuda_current_device()
    if isinstance(device, int) and not _C._cuda_device_count():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    device = taeda.device(device)
    if device.type != "cuda":
        return device.type, -1
    if not _C._cuda_device_count():
        raise RuntimeError(
            "PyTorch is not linked with support for cuda devices: no CUDA device was found"
        )
    return "cuda", _C._cuda_current_device() if device.index is None else device.index


def _refuse_events(type: str) -> None:
    if type != "cuda":
        raise RuntimeError(f"{type} backend doesn't support events.")


class Stream:
    """A queue of work on a device, which runs beside other streams.

    Args:
        device: the device; None for the accelerator's current one, or the CPU.
        priority: 0, or down to -3 for what should go first.

    >>> taeda.Stream("cpu").query()
    True
    """

    __slots__ = ("_contexts", "_type", "device_index", "stream_id")
    __module__ = "torch"

    def __init__(self, device: Any = None, *, priority: int = 0, **ids: Any) -> None:
        self._contexts: list[Any] = []
        if ids:
            self._adopt(**ids)
            return
        self._type, self.device_index = _device_of(device)
        self.stream_id = 0
        if self._type == "cuda":
            self.stream_id = _C._cuda_stream_from_pool(self.device_index, priority)

    def _adopt(self, **ids: int) -> None:
        wrong = ids.keys() ^ {"stream_id", "device_index", "device_type"}
        if wrong:
            raise TypeError(
                "Stream(): expected stream_id, device_index and device_type together: "
                f"{sorted(wrong)[0]!r}"
            )
        if ids["device_type"] not in _TYPES:
            raise RuntimeError(f"Stream(): unknown device_type {ids['device_type']}")
        self._type = _TYPES[ids["device_type"]]
        self.device_index, self.stream_id = ids["device_index"], ids["stream_id"]

    @property
    def device(self) -> taeda.device:
        """The device that it belongs to."""
        if self.device_index < 0:
            return taeda.device(self._type)
        return taeda.device(self._type, self.device_index)

    @property
    def device_type(self) -> int:
        """PyTorch's number of the device's type: 0 for the CPU, 1 for CUDA."""
        return _NUMBERS[self._type]

    @property
    def native_handle(self) -> int:
        """The driver's handle."""
        if self._type != "cuda":
            raise RuntimeError("Backend doesn't support getting stream native handle.")
        return _C._cuda_stream_handle(self.device_index, self.stream_id)

    def query(self) -> bool:
        """Whether all work is done."""
        return self._type != "cuda" or _C._cuda_stream_query(self.device_index, self.stream_id)

    def synchronize(self) -> None:
        """Waits until all work is done."""
        if self._type == "cuda":
            _C._cuda_stream_synchronize(self.device_index, self.stream_id)

    def is_capturing(self) -> bool:
        """Whether its work is captured into a graph (`torch.cuda.graph`)."""
        return self._type == "cuda" and _C._cuda_stream_is_capturing(
            self.device_index, self.stream_id
        )

    def wait_event(self, event: Event) -> None:
        """What is queued from now on waits for the event."""
        if event is None:
            return
        if not isinstance(event, Event):
            name = type(event).__name__
            raise TypeError(f"wait_event(): argument 'event' must be torch.Event, not {name}")
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        """What is queued from now on waits for all that `other` has been given."""
        _refuse_events("cpu" if other is None else other._type)
        self.wait_event(other.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        """Marks the work that was queued so far."""
        _refuse_events(self._type)
        if event is None:
            event = Event(self.device)
        event.record(self)
        return event

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stream)
            and self._type == other._type
            and self.device_index == other.device_index
            and self.stream_id == other.stream_id
        )

    def __hash__(self) -> int:
        return hash((self._type, self.device_index, self.stream_id))

    def __repr__(self) -> str:
        return (
            f"torch.Stream device_type={self._type}, device_index={self.device_index}, "
            f"stream_id={self.stream_id}"
        )

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle 'torch.{type(self).__name__}' object")

    # `with stream:` makes it and its device current; contexts may be nested. Streams of devices
    # without queues change nothing.
    def __enter__(self) -> Stream:
        if self._type == "cuda":
            now = _C._cuda_current_device(), _C._cuda_current_stream(self.device_index)
            _C._cuda_set_current_stream(self.device_index, self.stream_id)
            _C._cuda_set_device(self.device_index)
            self._contexts.append(now)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._type == "cuda":
            device, stream_id = self._contexts.pop()
            _C._cuda_set_current_stream(self.device_index, stream_id)
            _C._cuda_set_device(device)


class Event:
    """A point in the work of a stream.

    Args:
        device: the device; None for the accelerator's, or the CPU.
        enable_timing: whether it notes the time, for `elapsed_time`.
        blocking: whether `synchronize` lets the processor sleep.
        interprocess: has no effect.

    >>> taeda.Event("cpu").query()
    True
    """

    __slots__ = ("_event", "_timing", "_type")
    __module__ = "torch"

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        self._type = _device_of(device)[0]
        self._timing = enable_timing
        # None on devices without events
        self._event: Any = None
        if self._type == "cuda":
            self._event = _C._CudaEventBase(enable_timing, blocking)

    @property
    def device(self) -> Any:
        """The device that it was recorded on first, without a number before that."""
        if self._event is None or not self._event.cuda_event:
            return taeda.device(self._type)
        return taeda.device("cuda", self._event._device_index)

    @property
    def event_id(self) -> int:
        """The driver's handle; 0 before it is recorded."""
        return self._event.cuda_event if self._event is not None else 0

    def _stream(self, stream: Stream | None, doing: str) -> Stream:
        """The stream that an argument names; None: the current one of the event's device."""
        if stream is None:
            stream = _current_stream()
        elif not isinstance(stream, Stream):
            raise TypeError(
                f"{doing}(): argument 'stream' must be torch.Stream, not {type(stream).__name__}"
            )
        if stream._type != self._type:
            verb = "recording" if doing == "record" else "blocking"
            raise RuntimeError(
                f"Event device type {self._type} does not match {verb} stream's device type "
                f"{stream._type}."
            )
        return stream

    def record(self, stream: Stream | None = None) -> None:
        """Marks what `stream` (None: the current one) has been given so far."""
        _refuse_events(self._type)
        stream = self._stream(stream, "record")
        self._event._record(stream.device_index, stream.stream_id)

    def wait(self, stream: Stream | None = None) -> None:
        """What is given to `stream` (None: the current one) from now on waits for this point."""
        if self.event_id:
            stream = self._stream(stream, "wait")
            self._event._wait(stream.device_index, stream.stream_id)

    def query(self) -> bool:
        """Whether the work that was recorded has been done."""
        return self._event is None or self._event.query()

    def synchronize(self) -> None:
        """Waits until the work that was recorded has been done."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to the other one."""
        if not isinstance(end_event, Event):
            raise TypeError(
                "elapsed_time(): argument 'end_event' must be torch.Event, not "
                f"{type(end_event).__name__}"
            )
        if not (self._timing and end_event._timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if not (self.event_id and end_event.event_id):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return self._elapsed(end_event)

    def _elapsed(self, end_event: Event) -> float:
        if not (self.query() and end_event.query()):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return self._event.elapsed_time(end_event._event)

    def ipc_handle(self) -> Any:
        """NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("torch.Event ipc is not supported: ipc_handle()")

    @classmethod
    def from_ipc_handle(cls, device: Any, ipc_handle: Any) -> Any:
        """NotImplementedError: events are not shared between processes."""
        raise NotImplementedError("torch.Event ipc is not supported: from_ipc_handle()")

    def __repr__(self) -> str:
        index = self.device.index
        return (
            f"torch.Event device_type={self._type}, device_index={-1 if index is None else index}, "
            f"event_flag={int(self._timing)}, event_id={self.event_id}"
        )

    def __reduce__(self) -> Any:
        raise TypeError(f"cannot pickle 'torch.{type(self).__name__}' object")


def _stream_of(device_index: int, stream_id: int) -> Stream:
    return Stream(stream_id=stream_id, device_index=device_index, device_type=_NUMBERS["cuda"])


def _current_stream() -> Stream:
    """The calling thread's current stream of its current device."""
    if not _C._cuda_device_count():
        return Stream("cpu")
    index = _C._cuda_current_device()
    return _stream_of(index, _C._cuda_current_stream(index))


def get_device_module(device: Any = None) -> Any:
    """The module of a device: ``torch.cuda`` or ``torch.cpu``; None: the accelerator's.

    >>> taeda.get_device_module("cpu").device_count()
    1
    """
    if device is None:
        name = _device_of(None)[0]
    elif isinstance(device, (taeda.device, str)):
        name = taeda.device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    module = getattr(taeda, name, None)
    if module is None:
        raise RuntimeError(
            f"Device '{name}' does not have a corresponding module registered as 'torch.{name}'."
        )
    return module
