"""Timer: how long a statement takes."""

from __future__ import annotations

import timeit
from collections.abc import Callable
from enum import Enum
from textwrap import dedent
from typing import Any, NoReturn

from . import common

__all__ = ["Language", "Timer", "timer"]

timer = timeit.default_timer


class Language(Enum):
    PYTHON = 0
    CPP = 1


class Timer:
    """Times a statement, which runs with one thread unless ``num_threads`` says another number.

    Args:
        stmt: Python code to run over and over.
        setup: code to run once before.
        globals: what both see.
        label, sub_label, description, env: what ``Compare`` calls the row and column.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer: statements are Python's; C++ ones are not compiled")
        if global_setup:
            raise ValueError("global_setup is C++ only")
        import taeda

        stmt, setup = (dedent(code).strip("\n").rstrip() for code in (stmt, setup))
        self._globals = {"torch": taeda, **(globals or {})}
        self._timer = timeit.Timer(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = common.TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> common.Measurement:
        """One run of ``number`` executions."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return common.Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> NoReturn:
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """Executions of a block that takes long enough for the clock's own cost not to count."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            enough = taken >= min_run_time / 1000 and overhead / taken <= 1e-4
            if enough or taken > min_run_time:
                return number
            number *= 10

    def _blocks(self, number: int, callback: Any, least: float, done: Callable) -> list[float]:
        times: list[float] = []
        while sum(times) < least or not done(times):
            times.append(self._timeit(number))
            if callback is not None:
                callback(number, times[-1])
        return times

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> common.Measurement:
        """Blocks of executions, of a size that is found out, for ``min_run_time`` seconds."""
        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(min_run_time)
            times = self._blocks(number, callback, min_run_time, lambda _: True)
        return common.Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> common.Measurement:
        """Blocks of executions until the interquartile range is below ``threshold`` times the
        median, or ``max_run_time`` seconds have passed."""

        def done(number: int, times: list[float]) -> bool:
            found = common.Measurement(number, times, self._task_spec)
            steady = len(times) > 3 and found.meets_confidence(threshold)
            return steady or sum(times) > max_run_time

        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block_size(0.05)
            times = self._blocks(number, callback, min_run_time, lambda t: done(number, t))
        return common.Measurement(number, times, self._task_spec)

    def collect_callgrind(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            "Timer.collect_callgrind: taeda does not run programs under Valgrind; use "
            "blocked_autorange for times"
        )
