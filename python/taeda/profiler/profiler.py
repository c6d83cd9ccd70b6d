"""``torch.profiler.profile`` with its schedule of steps, and what writes its results."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any

from taeda.autograd import profiler as _recorder
from taeda.autograd.profiler_util import EventList

PROFILER_STEP_NAME = "ProfilerStep"

__all__ = [
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(Enum):
    """What happens in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3  # the last step recorded: then ``on_trace_ready`` is called


class ProfilerActivity(Enum):
    """What can be recorded. Only the CPU is, here."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """What is recorded: the CPU."""
    return {ProfilerActivity.CPU}


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """Cycles of ``wait`` steps of nothing, ``warmup`` steps, ``active`` steps that are recorded.

    Args:
        repeat: how many cycles; 0 for no end.
        skip_first: steps before the first cycle.
        skip_first_wait: not 0 leaves the wait out of the first cycle.

    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")
    if warmup == 0:
        warnings.warn(
            "Profiler won't be using warmup, this can skew profiler results", stacklevel=2
        )

    def plan(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        step += wait if skip_first_wait else 0
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        at = step % cycle
        if at < wait:
            return ProfilerAction.NONE
        if at < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if at < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return plan


def _default_schedule_fn(_: int) -> ProfilerAction:
    """Records every step."""
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[Any], None]:
    """An ``on_trace_ready`` that writes each trace to a file in a folder."""

    def handle(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except Exception as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle


class _KinetoProfile:
    """Records from ``start_trace`` to ``stop_trace``; ``profile`` adds steps and their schedule.

    Args:
        activities: what to record; the CPU is all that can be.
        record_shapes, with_stack, with_flops, profile_memory: see autograd.profiler.profile.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        self.activities = set(activities) if activities is not None else supported_activities()
        if not self.activities:
            raise AssertionError("No valid profiler activities found")
        for activity in self.activities - supported_activities():
            name = getattr(activity, "name", activity)
            warnings.warn(f"{name} is not available, disabling {name} profiling", stacklevel=3)
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.with_flops = with_flops
        self.with_modules = with_modules
        self.acc_events = acc_events
        self.profiler: Any = None
        self._metadata: dict[str, Any] = {}

    def start(self) -> None:
        self.prepare_trace()
        self.start_trace()

    def stop(self) -> None:
        self.stop_trace()

    def prepare_trace(self) -> None:
        """Makes the recorder."""
        if self.profiler is None or not self.acc_events:
            self.profiler = _recorder.profile(
                record_shapes=self.record_shapes,
                with_stack=self.with_stack,
                with_flops=self.with_flops,
                profile_memory=self.profile_memory,
                acc_events=self.acc_events,
            )

    def start_trace(self) -> None:
        """Begins to record; RuntimeError where somebody does already."""
        self.profiler._start_trace()

    def stop_trace(self) -> None:
        """Ends it."""
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before stopping trace")
        self.profiler.__exit__(None, None, None)

    def _recorded(self) -> Any:
        if self.profiler is None:
            raise AssertionError("Profiler must be initialized before it gives results")
        return self.profiler

    def events(self) -> EventList:
        """What was recorded last, by start."""
        return self._recorded().function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """An average for each operator, and where asked for, shapes and caller."""
        return self._recorded().key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def export_chrome_trace(self, path: str) -> None:
        """A file for chrome://tracing and Perfetto; compressed where it ends in ".gz"."""
        self._recorded().export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Lines "caller microseconds"; needs ``with_stack``."""
        self._recorded().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        raise NotImplementedError("export_memory_timeline: memory is not recorded")

    def add_metadata(self, key: str, value: str) -> None:
        """Adds text to traces that are written."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds what a text in JSON says to traces that are written."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable: bool, activities: Any) -> None:
        raise NotImplementedError("toggle_collection_dynamic: use a schedule")


_SAVE = ProfilerAction.RECORD_AND_SAVE
_IDLE = (ProfilerAction.NONE, ProfilerAction.WARMUP)


class profile(_KinetoProfile):
    """Records the operators of a block, or of those steps of it that a schedule picks.

    Args:
        activities: what to record; the CPU is all that can be, others warn.
        schedule: the number of a step, as ``step()`` counts them, to a ProfilerAction; see
            ``torch.profiler.schedule``. None records the whole block.
        on_trace_ready: called with the profiler when steps that belong together are recorded.
        record_shapes: the tensor arguments' sizes, too.
        with_stack: where in the program each operator was called.
        with_flops: estimates floating-point operations of matrix products and sums.
        profile_memory: the bytes of CPU storages that each allocated less those it released.

    >>> plan = torch.profiler.schedule(wait=1, warmup=1, active=1)
    >>> names = []
    >>> def ready(prof):
    ...     names.extend(event.trace_name for event in prof.events())
    >>> with torch.profiler.profile(schedule=plan, on_trace_ready=ready) as prof:
    ...     for _ in range(3):
    ...         _ = torch.ones(2).sum()
    ...         prof.step()
    >>> names[0], "aten::sum" in names
    ('ProfilerStep#2', True)
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        use_cuda: bool | None = None,
        **options: Any,
    ) -> None:
        if use_cuda is not None:
            warnings.warn(
                "`use_cuda` is deprecated, use `activities` argument instead",
                FutureWarning,
                stacklevel=2,
            )
        super().__init__(activities=activities, **options)
        self.schedule = schedule or _default_schedule_fn
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.step_rec_fn: Any = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self.stop()

    def start(self) -> None:
        self._transit(ProfilerAction.NONE, self.current_action)
        self._enter_step()

    def stop(self) -> None:
        self._leave_step()
        self._transit(self.current_action, None)

    def step(self) -> None:
        """Says that the next step of the program begins."""
        self._leave_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        self._transit(before, self.current_action)
        self._enter_step()

    def get_trace_id(self) -> str | None:
        """The number of the recorder."""
        return None if self.profiler is None else f"{id(self.profiler):032X}"

    def set_custom_trace_id_callback(self, callback: Any) -> None:
        self.custom_trace_id_callback = callback

    def _enter_step(self) -> None:
        if self.record_steps:
            self.step_rec_fn = _recorder.record_function(f"{PROFILER_STEP_NAME}#{self.step_num}")
            self.step_rec_fn.__enter__()

    def _leave_step(self) -> None:
        if self.step_rec_fn is not None:
            self.step_rec_fn.__exit__(None, None, None)
            self.step_rec_fn = None

    def _transit(self, before: ProfilerAction, now: ProfilerAction | None) -> None:
        """What has to happen between two steps; None is the end."""
        was_on = before not in _IDLE
        done = before is _SAVE or (now is None and was_on)
        if before is ProfilerAction.WARMUP and now is ProfilerAction.NONE:
            warnings.warn("Incorrect schedule: WARMUP followed by NONE", stacklevel=4)
        if before is ProfilerAction.RECORD and now in _IDLE:
            warnings.warn(
                f"Incorrect schedule: RECORD followed by {now.name}",
                stacklevel=4,  # type: ignore[union-attr]
            )
            done = True
        if was_on and done:
            self.stop_trace()
            if before is not ProfilerAction.RECORD or now is None:
                self._trace_ready()
        if now is not None and now not in _IDLE and not (was_on and not done):
            self.prepare_trace()
            self.start_trace()

    def _trace_ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)


class ExecutionTraceObserver:
    """PyTorch's traces for replay; registering one raises."""

    def register_callback(self, output_file_path: str) -> Any:
        raise NotImplementedError(
            "ExecutionTraceObserver: taeda records no traces for replay; "
            "torch.profiler.profile(...).export_chrome_trace writes one to look at"
        )
