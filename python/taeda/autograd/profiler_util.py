"""What the profiler recorded: events, their averages, and both as lists."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

from taeda.autograd._profiler_table import build_table, format_time

__all__ = [
    "DeviceType",
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "Interval",
    "Kernel",
]


OUTSIDE = "[memory]"  # of the events for memory that changes while no operator runs


class DeviceType(Enum):
    """Where something ran."""

    CPU = 0
    CUDA = 1


class Kernel(NamedTuple):
    """A kernel on another device; none is recorded yet."""

    name: str
    device: int
    duration: float


class Interval:
    """A time from ``start`` to ``end``, in microseconds."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


def _text(attribute: str) -> property:
    return property(lambda self: format_time(getattr(self, attribute)))


class _Times:
    """Averages and texts of ``cpu_time_total``, ``self_cpu_time_total`` and ``count``; nothing is
    recorded of other devices, whose times are 0."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total: float = 0.0
    self_device_time_total: float = 0.0
    cpu_memory_usage: int
    self_cpu_memory_usage: int
    device_memory_usage = self_device_memory_usage = 0

    cpu_time_str = _text("cpu_time")
    cpu_time_total_str = _text("cpu_time_total")
    self_cpu_time_total_str = _text("self_cpu_time_total")
    device_time_str = _text("device_time")
    device_time_total_str = _text("device_time_total")
    self_device_time_total_str = _text("self_device_time_total")

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time

    @property
    def cuda_time_total(self) -> float:
        return self.device_time_total

    @property
    def self_cuda_time_total(self) -> float:
        return self.self_device_time_total


class FunctionEvent(_Times):
    """One call of an operator, or one block of ``record_function``; times in microseconds.

    ``cpu_parent`` is the event that called it and ``cpu_children`` those that it called.
    """

    count = 1
    device_type = DeviceType.CPU
    node_id = -1
    is_async = is_remote = is_legacy = False
    sequence_nr = -1
    use_device = None

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        input_shapes: Any = None,
        stack: Iterable[str] | None = None,
        is_user_annotation: bool = False,
        flops: int | None = None,
        overload_name: str = "",
        cpu_memory_usage: int = 0,
        **_: Any,
    ) -> None:
        self.id = id
        self.trace_name = name
        self.name = "ProfilerStep*" if name.startswith("ProfilerStep#") else name
        self.overload_name = overload_name
        self.thread = thread
        self.time_range = Interval(start_us, end_us)
        self.input_shapes = input_shapes or []
        self.stack = list(stack or ())
        self.is_user_annotation = is_user_annotation
        self.flops = flops
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None
        self.kernels: list[Kernel] = []
        self.cpu_memory_usage = cpu_memory_usage

    @property
    def key(self) -> str:
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:  # type: ignore[override]
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        self.cpu_parent = parent

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} "
            f"cpu_children={[child.id for child in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes}>"
        )


class FunctionEventAvg(_Times):
    """The sums over the events of one name."""

    def __init__(self) -> None:
        self.key: str | None = None
        self.overload_name = ""
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.node_id = -1
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.device_type = DeviceType.CPU
        self.use_device = None
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Counts an event, or the events of another average, in."""
        if self.key is None:
            self.key, self.overload_name = other.key, other.overload_name
            self.input_shapes, self.stack = other.input_shapes, other.stack
            self.cpu_parent, self.cpu_children = other.cpu_parent, other.cpu_children
            self.is_user_annotation = other.is_user_annotation
        self.cpu_time_total += other.cpu_time_total
        self.self_cpu_time_total += other.self_cpu_time_total
        self.cpu_memory_usage += other.cpu_memory_usage
        self.self_cpu_memory_usage += other.self_cpu_memory_usage
        self.count += other.count
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} "
            f"cuda_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """Events by their start, or averages."""

    def __init__(
        self, *args: Any, with_flops: bool = False, profile_memory: bool = False, **_: Any
    ) -> None:
        super().__init__(*args)
        self._profile_memory = profile_memory
        self._with_flops = with_flops

    def _build_tree(self) -> None:
        """Finds each event's parent: the innermost that was running in its thread."""
        running: dict[int, list[FunctionEvent]] = defaultdict(list)
        operators = (event for event in self if event.name != OUTSIDE)
        for event in sorted(operators, key=lambda e: (e.time_range.start, -e.time_range.end)):
            stack = running[event.thread]
            while stack and stack[-1].time_range.end < event.time_range.end:
                stack.pop()
            if stack:
                event.set_cpu_parent(stack[-1])
                stack[-1].append_cpu_child(event)
            stack.append(event)

    _populate_cpu_children = _build_tree

    def __str__(self) -> str:
        return self.table()

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as text.

        Args:
            sort_by: an attribute, the largest first: "cpu_time", "cpu_time_total",
                "self_cpu_time_total", "count" and others.
            row_limit: how many rows; -1 for all.
            top_level_events_only: leave out what others called.
            time_unit: "s", "ms" or "us" for all times.
        """
        return build_table(
            self,
            sort_by=sort_by,
            row_limit=row_limit,
            widths=(max_name_column_width, max_src_column_width, max_shapes_column_width),
            header=header,
            with_flops=self._with_flops,
            with_memory=self._profile_memory,
            top_level_only=top_level_events_only,
            time_unit=time_unit,
        )

    @property
    def self_cpu_time_total(self) -> float:
        """The time in all events, none counted twice."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """An average for each name, and where asked for, shapes, caller and overload."""
        groups: dict[tuple, FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]),
                event.overload_name if group_by_overload_name else "",
            )
            groups.setdefault(key, FunctionEventAvg()).add(event)
        for average in groups.values():
            average.stack = average.stack[:group_by_stack_n]
            average.input_shapes = average.input_shapes if group_by_input_shapes else ""
            average.overload_name = average.overload_name if group_by_overload_name else ""
        return EventList(
            groups.values(), with_flops=self._with_flops, profile_memory=self._profile_memory
        )

    def total_average(self) -> FunctionEventAvg:
        """One average of all; it has no time of its own kind: what is inside others counts too."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def export_chrome_trace(self, path: str) -> None:
        """A file for chrome://tracing and Perfetto."""
        write_trace(path, self, {})

    def export_stacks(self, path: str, metric: str) -> None:
        """Lines "caller microseconds", as flame graphs are made of; ``metric`` is
        "self_cpu_time_total" or "self_cuda_time_total"."""
        if metric not in ("self_cpu_time_total", "self_cuda_time_total"):
            raise ValueError("metric should be one of: self_cpu_time_total, self_cuda_time_total")
        times: dict[str, int] = defaultdict(int)
        for event in self:
            if event.stack:
                times[";".join(reversed(event.stack))] += int(getattr(event, metric))
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(f"{stack} {time}\n" for stack, time in times.items() if time > 0)


def write_trace(path: str, events: Iterable[FunctionEvent], metadata: dict[str, Any]) -> None:
    """The events in Chrome's format for traces; compressed where the path ends in ".gz"."""
    process = os.getpid()
    name = {"name": "process_name", "ph": "M", "pid": process, "tid": 0, "ts": 0}
    rows: list[dict[str, Any]] = [{**name, "args": {"name": "python"}}]
    for event in events:
        arguments: dict[str, Any] = {"External id": event.id}
        if event.input_shapes:
            arguments["Input Dims"] = event.input_shapes
        if event.stack:
            arguments["Call stack"] = ";".join(event.stack)
        rows.append(
            {
                "ph": "X",
                "cat": "user_annotation" if event.is_user_annotation else "cpu_op",
                "name": event.trace_name,
                "pid": process,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.cpu_time_total,
                "args": arguments,
            }
        )
    trace = {"schemaVersion": 1, "deviceProperties": [], "displayTimeUnit": "ms", **metadata}
    text = json.dumps({**trace, "traceEvents": rows, "traceName": str(path)})
    if str(path).endswith(".gz"):
        import gzip

        with gzip.open(path, "wt") as packed:
            packed.write(text)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
