"""Which operators ran, for how long and on what, while a block ran.

>>> with torch.autograd.profiler.profile() as prof:
...     _ = torch.ones(3) + 1
>>> "aten::add" in prof.table()
True
"""

from __future__ import annotations

import contextlib
import threading
import time
import warnings
from typing import Any

from taeda import _C
from taeda.autograd.profiler_util import (
    DeviceType,
    EventList,
    FunctionEvent,
    FunctionEventAvg,
    Interval,
    Kernel,
    write_trace,
)

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
    "emit_itt",
    "emit_nvtx",
    "kineto_available",
    "load_nvprof",
    "profile",
    "record_function",
]

_MOST_RECORDS = 1 << 22  # a thread; older ones are dropped then

# The blocks of record_function while somebody profiles, else None: (name, start, end, thread).
_blocks: list[tuple[str, int, int, int]] | None = None


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
        self._start = 0

    def _recreate_cm(self) -> record_function:
        return type(self)(self.name, self.args)

    def __enter__(self) -> record_function:
        if _blocks is not None:
            self._start = time.monotonic_ns()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if _blocks is not None and self._start:
            end = time.monotonic_ns()
            _blocks.append((self.name, self._start, end, threading.get_native_id()))
        self._start = 0


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


class profile:
    """Records the operators that a block runs, in this thread and those that work for it.

    Args:
        enabled: False records nothing.
        record_shapes: the tensor arguments' sizes, too.
        with_stack: where in the program each was called.
        with_flops: estimates the floating-point operations of matrix products and sums.
        profile_memory: there are no records of memory; says so once.
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
        if profile_memory:
            warnings.warn(
                "profile_memory: taeda's profiler does not record memory; "
                "torch.cpu.memory_stats() counts it",
                stacklevel=2,
            )
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
        global _blocks
        if _blocks is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        shapes = self.record_shapes or self.with_flops
        _C._profile_start(shapes, self.with_stack, _MOST_RECORDS)
        self.entered, _blocks = True, []

    def __exit__(self, *exc_info: Any) -> None:
        global _blocks
        if not self.enabled or not self.entered:
            return
        blocks, _blocks = _blocks or [], None
        records, dropped = _C._profile_stop()
        self.entered = False
        if dropped:
            warnings.warn(f"the profiler dropped the {dropped} oldest records", stacklevel=2)
        events = self._make_events(records, blocks)
        if self.acc_events and self._events is not None:
            events = EventList([*self._events, *events], with_flops=self.with_flops)
        self._events = events

    def _make_events(self, records: list, blocks: list) -> EventList:
        rows: list[tuple] = [
            (start, -end, name, [], thread, "") for name, start, end, thread in blocks
        ]
        for name, shapes, start, end, thread, frame in records:
            plain = name.rpartition(".")[0] or name if "." in name else name
            rows.append((start, -max(end, start), plain, shapes, thread, frame))
        user = len(blocks)
        order = sorted(range(len(rows)), key=lambda i: rows[i][:2])
        events = EventList(with_flops=self.with_flops)
        for number, i in enumerate(order, start=1):
            start, end, name, shapes, thread, frame = rows[i]
            found = [list(shape) for shape in shapes]
            events.append(
                FunctionEvent(
                    number,
                    name,
                    thread,
                    start / 1e3,
                    -end / 1e3,
                    found if self.record_shapes else [],
                    [frame] if frame else [],
                    i < user,
                    _flops(name, found) if self.with_flops else None,
                )
            )
        events._build_tree()
        return events

    @property
    def function_events(self) -> EventList:
        """The events by their start."""
        return self._finished()

    def _finished(self) -> EventList:
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
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

    def total_average(self) -> FunctionEventAvg:
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
        return "<unfinished torch.autograd.profile>" if self._events is None else str(self._events)

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


def load_nvprof(path: str) -> EventList:
    """Not there: files of nvprof are not read."""
    raise NotImplementedError("load_nvprof: taeda does not read nvprof's files")


def kineto_available() -> bool:
    """Whether ``torch.profiler.profile`` works: here it always does, without Kineto."""
    return hasattr(_C, "_profile_start")


def _is_profiler_enabled() -> bool:
    """Whether somebody profiles in this process."""
    return _blocks is not None
