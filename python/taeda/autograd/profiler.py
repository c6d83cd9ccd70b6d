"""Which operators ran, for how long and on what, while a block ran.

>>> with torch.autograd.profiler.profile() as prof:
...     _ = torch.ones(3) + 1
>>> "aten::add" in prof.table()
True
"""

from __future__ import annotations

import contextlib
import threading
import warnings
from typing import Any

from taeda import _C, _missing
from taeda.autograd.profiler_util import (
    OUTSIDE,
    DeviceType,
    EventList,
    FunctionEvent,
    write_trace,
)

__all__ = [
    "DeviceType",
    "EnforceUnique",
    "EventList",
    "FunctionEvent",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "load_nvprof",
    "profile",
    "record_function",
]

_MOST_RECORDS = 1 << 22  # a thread; older ones are dropped then

_recording = False  # whether somebody profiles


class record_function(contextlib.ContextDecorator):
    """Names a block, or the calls of a function it decorates, in what is profiled.

    Costs next to nothing while nobody profiles.

    >>> with torch.profiler.profile() as prof, torch.profiler.record_function("my block"):
    ...     _ = torch.ones(2).sum()
    >>> [event.name for event in prof.events()][0]
    'my block'
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._block: int | None = None

    def _recreate_cm(self) -> record_function:
        return type(self)(self.name, self.args)

    def __enter__(self) -> record_function:
        if _recording:
            self._block = _C._profile_begin_block(self.name)
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if self._block is not None:
            _C._profile_end_block(self._block)
            self._block = None


# Names of operators whose floating-point operations their arguments' shapes tell.
_PRODUCTS = {"aten::mm": 0, "aten::bmm": 0, "aten::addmm": 1, "aten::baddbmm": 1, "aten::matmul": 0}


def _flops(name: str, shapes: list) -> int | None:
    if name == "aten::linear" and len(shapes) > 1 and len(shapes[1]) == 2:
        shapes, name = [shapes[0], shapes[1][::-1]], "aten::mm"
    at = _PRODUCTS.get(name)
    if at is not None and len(shapes) > at + 1:
        left, right = shapes[at], shapes[at + 1]
        return 2 * _numel(left) * (right[-1] if len(right) > 1 else 1)
    if name in ("aten::add", "aten::mul") and shapes:
        return max(map(_numel, shapes))
    return None


def _numel(shape: list) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


class _OutsideOperators:
    """Events for what the profiled thread allocates and releases between operators."""

    def __init__(self, first: int, last: int) -> None:
        self.bytes, self.last = first, last
        self.thread = threading.get_native_id()
        self.end_us = 0.0

    def until(
        self, count: int, start: int, end: int, thread: int, before: int, after: int
    ) -> list[FunctionEvent]:
        """That between the last operator and the one of these times."""
        if thread != self.thread or start / 1e3 < self.end_us:
            return []
        event = self._event(count, start / 1e3, before)
        self.end_us, self.bytes = end / 1e3, after
        return event

    def rest(self, count: int) -> list[FunctionEvent]:
        return self._event(count, self.end_us, self.last)

    def _event(self, count: int, at_us: float, now: int) -> list[FunctionEvent]:
        if now == self.bytes:
            return []
        used = now - self.bytes
        return [FunctionEvent(count + 1, OUTSIDE, self.thread, at_us, at_us, cpu_memory_usage=used)]


class profile:
    """Records the operators that a block runs, in this thread and those that work for it.

    Args:
        enabled: False records nothing.
        record_shapes: the tensor arguments' sizes, too.
        with_stack: where in the program each was called.
        with_flops: estimates the floating-point operations of matrix products and sums.
        profile_memory: the bytes of CPU storages that each allocated less those it released.
        use_device, use_cuda: other devices' times are not recorded.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: str | None = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        **_: Any,
    ) -> None:
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.with_flops = with_flops
        self.with_stack = with_stack
        self.profile_memory = profile_memory
        self.acc_events = acc_events
        self.entered = False
        self._events: EventList | None = None
        self._unread: Any = None  # the core's records of what ran last
        self._bytes = [0, 0]  # of CPU storages when recording began and ended
        if use_cuda or use_device not in (None, "cpu"):
            warnings.warn(
                f"{use_device or 'cuda'} is not available, disabling its profiling", stacklevel=2
            )

    def __enter__(self) -> profile:
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if self.enabled:
            self._start_trace()
        return self

    def _start_trace(self) -> None:
        global _recording
        if _recording:
            raise RuntimeError("Profiler is already enabled on this thread")
        shapes = self.record_shapes or self.with_flops
        self._bytes[0] = _C._storage_bytes()
        _C._profile_start(shapes, self.with_stack, _MOST_RECORDS, self.profile_memory)
        self.entered = _recording = True

    def __exit__(self, *exc_info: Any) -> None:
        global _recording
        if not self.enabled or not self.entered:
            return
        before = self._finished() if self.acc_events and self._unread is not None else None
        _recording = self.entered = False
        self._unread, dropped = _C._profile_stop()
        self._bytes[1] = _C._storage_bytes()
        if dropped:
            warnings.warn(f"the profiler dropped the {dropped} oldest records", stacklevel=2)
        self._events = None
        if before is not None:
            self._events = EventList(
                [*before, *self._finished()],
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
            )

    def _make_events(self) -> EventList:
        """The core's records as objects, which are made when they are asked for first."""
        records = _C._profile_rows(self._unread)
        records.sort(key=lambda record: (record[2], -record[3]))
        events = EventList(with_flops=self.with_flops, profile_memory=self.profile_memory)
        memory = _OutsideOperators(*self._bytes) if self.profile_memory else None
        for name, shapes, start, end, thread, frame, before, after, is_block in records:
            if memory is not None:
                events.extend(memory.until(len(events), start, end, thread, before, after))
            if not is_block and "." in name:
                name = name.rpartition(".")[0]
            found = [list(shape) for shape in shapes]
            events.append(
                FunctionEvent(
                    len(events) + 1,
                    name,
                    thread,
                    start / 1e3,
                    end / 1e3,
                    found if self.record_shapes else None,
                    [frame] if frame else None,
                    is_block,
                    _flops(name, found) if self.with_flops else None,
                    cpu_memory_usage=after - before if self.profile_memory else 0,
                )
            )
        if memory is not None:
            events.extend(memory.rest(len(events)))
        events._build_tree()
        return events

    @property
    def function_events(self) -> EventList:
        """The events by their start."""
        return self._finished()

    def _finished(self) -> EventList:
        if self._events is None:
            if self._unread is None:
                raise RuntimeError("Profiler didn't finish running")
            self._events = self._make_events()
        return self._events

    def table(self, *args: Any, **kwargs: Any) -> str:
        """See EventList.table."""
        return self._finished().table(*args, **kwargs)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """An average for each operator, and where asked for, shapes and caller."""
        return self._finished().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> Any:
        """See EventList.total_average."""
        return self._finished().total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events, none counted twice."""
        return self._finished().self_cpu_time_total

    def export_chrome_trace(self, path: str, metadata: dict | None = None) -> None:
        """A file for chrome://tracing and Perfetto."""
        write_trace(path, self._finished(), metadata or {})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """See EventList.export_stacks; needs ``with_stack``."""
        if not self.with_stack:
            raise RuntimeError("export_stacks() requires with_stack=True")
        self._finished().export_stacks(path, metric)

    def __repr__(self) -> str:
        unfinished = self._unread is None
        return "<unfinished torch.autograd.profile>" if unfinished else str(self._finished())

    __str__ = __repr__


class _Emit:
    """Marks for a profiler of another maker, which would have to be there."""

    _library = ""

    def __init__(self, enabled: bool = True, record_shapes: bool = False) -> None:
        self.enabled = enabled

    def __enter__(self) -> _Emit:
        if self.enabled:
            raise RuntimeError(
                f"{type(self).__name__}: taeda is built without {self._library}; "
                "torch.profiler.profile records the same operators"
            )
        return self

    def __exit__(self, *exc_info: Any) -> None: ...


class emit_nvtx(_Emit):
    """Marks of each operator for NVIDIA's profilers: raises, but where ``enabled`` is False."""

    _library = "NVTX"


class emit_itt(_Emit):
    """Marks of each operator for Intel's profilers: raises, but where ``enabled`` is False."""

    _library = "ITT"


class EnforceUnique:
    """RuntimeError where ``see`` gets the same key twice."""

    def __init__(self) -> None:
        self.seen: set[tuple] = set()

    def see(self, *key: Any) -> None:
        if key in self.seen:
            raise RuntimeError(f"duplicate key: {key}")
        self.seen.add(key)


def load_nvprof(path: str) -> EventList:
    """Not there: files of nvprof are not read."""
    raise NotImplementedError("load_nvprof: taeda does not read nvprof's files")


def kineto_available() -> bool:
    """Whether ``torch.profiler.profile`` works: here it always does, without Kineto."""
    return hasattr(_C, "_profile_start")


def _is_profiler_enabled() -> bool:
    """Whether somebody profiles in this process."""
    return _recording


__getattr__, __dir__ = _missing.attributes(__name__)
