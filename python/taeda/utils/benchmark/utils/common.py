"""Measured times and what they were of."""

from __future__ import annotations

import contextlib
import math
import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from textwrap import indent
from typing import Any

import taeda

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MOST_FIGURES = 4
_LEAST_INTERVAL = 25e-9
_WARN, _WARN_MORE = 0.1, 0.25  # interquartile ranges over the median
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


@dataclass(frozen=True, repr=False)
class TaskSpec:
    """What was timed."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        if self.label is None and "\n" in self.stmt:
            below = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{below}\n{indent(self.stmt, '  ')}"
        name = self.stmt if self.label is None else self.label
        return name + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        if self.setup == "pass" or not self.setup:
            return ""
        if "\n" in self.setup:
            return f"setup:\n{indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup, as far as there are any."""
        parts = [part for part in (self.title, self.description, self.setup_str()) if part]
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts)


_FIELDS = tuple(field.name for field in fields(TaskSpec))


@dataclass(repr=False)
class Measurement:
    """The seconds that runs took, each of ``number_per_run`` executions.

    ``times`` are those of one execution; ``median``, ``mean`` and ``iqr`` are of these. The
    attributes of ``task_spec`` are its own, too.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'Measurement' object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        return [t / self.number_per_run for t in self.raw_times]

    def _quantile(self, share: float) -> float:
        ordered = sorted(self.times)
        at = share * (len(ordered) - 1)
        low = ordered[math.floor(at)]
        return low + (ordered[math.ceil(at)] - low) * (at - math.floor(at))

    @property
    def median(self) -> float:
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.times)

    @property
    def iqr(self) -> float:
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many digits the spread of the inner half lets one trust."""
        n = len(self.times)
        inner = sorted(self.times)[n // 4 : math.ceil(3 * n / 4)]
        interval = max(1.645 * statistics.pstdev(inner) / math.sqrt(len(inner)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _WARN) -> bool:
        """Whether the interquartile range is less than this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        return bool(self.raw_times) and not self.meets_confidence()

    def _warning(self) -> list[str]:
        if not self.has_warnings:
            return []
        gross = not self.meets_confidence(_WARN_MORE)
        why = (
            "This suggests significant environmental influence."
            if gross
            else "This could indicate system fluctuation."
        )
        return [
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median "
            "measurement.",
            f"           {why}",
        ]

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str:
        return "Unspecified env" if self.task_spec.env is None else self.task_spec.env

    @property
    def as_row_name(self) -> str:
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        n, threads = len(self.raw_times), self.task_spec.num_threads
        middle = f"{self.median / scale:.2f} {unit}"
        lines = [object.__repr__(self).replace("taeda.", "torch."), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if n > 1 else ''}{middle}")
        if n >= 4:
            quarters = [f"{self._quantile(share) / scale:.2f}" for share in (0.25, 0.75)]
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({' to '.join(quarters)})")
        runs = f"{self.number_per_run} runs {'per measurement' if n > 1 else ''}"
        counted = f"{n} measurement{'s' if n > 1 else ''}"
        lines.append(f"  {counted}, {runs}, {threads} thread{'s' if threads > 1 else ''}")
        return "\n".join(lines + self._warning())

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One for each task, with the times of all of its measurements."""
        times: dict[TaskSpec, list[float]] = {}
        for measurement in measurements:
            times.setdefault(measurement.task_spec, []).extend(measurement.times)
        return [Measurement(1, found, task) for task, found in times.items()]


def select_unit(t: float) -> tuple[str, float]:
    """("us", 1e-6) for a time in seconds."""
    power = int(math.log10(t) // 3)
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(power, "s")
    return unit, _UNITS[unit]


def unit_to_english(u: str) -> str:
    """ "microsecond" for "us"."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to ``n`` digits that count.

    >>> from torch.utils.benchmark import trim_sigfig
    >>> trim_sigfig(12345, 2)
    12000.0
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements, each once, in the order of their first."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """A context with this number of threads."""
    before = taeda.get_num_threads()
    try:
        taeda.set_num_threads(n)
        yield
    finally:
        taeda.set_num_threads(before)
