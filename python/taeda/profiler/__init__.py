"""The profiler: which operators ran, when, for how long and on what, over steps of a program.

>>> with torch.profiler.profile(record_shapes=True) as prof:
...     _ = torch.ones(2, 3) @ torch.ones(3, 2)
>>> table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=10)
>>> print(table.splitlines()[1].split()[:4])
['Name', 'Self', 'CPU', '%']
"""

from taeda import _missing
from taeda.autograd.profiler import kineto_available, record_function
from taeda.autograd.profiler_util import DeviceType

from .profiler import (
    ExecutionTraceObserver,
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "DeviceType",
    "ExecutionTraceObserver",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]

__getattr__, __dir__ = _missing.attributes(__name__)
