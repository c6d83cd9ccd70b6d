"""Tables of measurements: tasks by row, descriptions by column."""

from __future__ import annotations

import math
from collections.abc import Iterable
from enum import Enum
from typing import Any

from . import common

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _WORST = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_BOLD, _END = "\033[1m", "\033[0m"


class Colorize(Enum):
    """What the best is told from: all of a column, or of a row."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


def _colored(text: str, value: float, best: float) -> str:
    if value <= best * 1.01 or value <= best + 100e-9:
        return _BEST + _BOLD + text + _END * 2
    if value <= best * 1.1:
        return _GOOD + _BOLD + text + _END * 2
    if value >= best * 5:
        return _WORST + _BOLD + text + _END * 2
    return _BAD + text + _END * 2 if value >= best * 2 else text


class _Column:
    """How the numbers of a column are written."""

    def __init__(self, results: list, scale: float, trim: bool, warn: bool) -> None:
        self._scale, self._trim = scale, trim
        there = [r for r in results if r is not None]
        self._warn = warn and any(r.has_warnings for r in there)
        digits = [math.ceil(math.log10(r.median / scale)) for r in there]
        decimals = 1
        if trim:
            pairs = zip(digits, there)
            decimals = min(max(r.significant_figures - d, 0) for d, r in pairs)
        width = max(digits) + decimals + (1 if decimals else 0)
        self._template = f"{{:>{width}.{decimals}f}}{{:>{7 if self._warn else 0}}}"

    def text(self, result: Any) -> str:
        if result is None:
            return " " * len(self._template.format(1, ""))
        value = result.median / self._scale
        if self._trim:
            value = common.trim_sigfig(value, result.significant_figures)
        warn = self._warn and result.has_warnings
        return self._template.format(
            value, f" (! {result.iqr / result.median * 100:.0f}%)" if warn else ""
        )


class _Table:
    def __init__(self, results: list, colorize: Colorize, trim: bool, warn: bool) -> None:
        self.results, self.colorize, self.warn = results, colorize, warn
        self.unit, self.scale = common.select_unit(min(r.median for r in results))
        keys = common.ordered_unique((r.num_threads, r.env, r.as_row_name) for r in results)
        self.keys = sorted(keys, key=lambda key: key[:2])
        self.titles = common.ordered_unique(r.description for r in results)
        cells = {((r.num_threads, r.env, r.as_row_name), r.description): r for r in results}
        self.cells = [[cells.get((key, title)) for title in self.titles] for key in self.keys]
        self.columns = [
            _Column(list(column), self.scale, trim, warn) for column in zip(*self.cells)
        ]

    def _names(self) -> list[str]:
        """The first column: the environment, where it changes, and the task."""
        envs = {r.env for r in self.results}
        width = max(map(len, envs)) if len(envs) > 1 else 0
        names, before = [], (None, None)
        for threads, env, name in self.keys:
            shown = f"({env})" if len(envs) > 1 and (threads, env) != before else ""
            names.append("  " + shown.ljust(width + 4) + name)
            before = (threads, env)
        return names

    def _best(self, row: int, column: int) -> float:
        if self.colorize is Colorize.ROWWISE:
            found = self.cells[row]
        else:
            threads = self.keys[row][0]
            rows = [i for i, key in enumerate(self.keys) if key[0] == threads]
            found = [self.cells[i][column] for i in rows]
        return min(r.median for r in found if r is not None)

    def render(self) -> str:
        texts = [[c.text(r) for c, r in zip(self.columns, row)] for row in self.cells]
        rows = [[name, *row] for name, row in zip(self._names(), texts)]
        head = ["", *[title or "" for title in self.titles]]
        widths = [max(map(len, column)) for column in zip(head, *rows)]
        lines = ["  |  ".join(text.center(width) for text, width in zip(head, widths))]
        overall, before = len(lines[0]), None
        for i, row in enumerate(rows):
            threads = self.keys[i][0]
            if threads != before:
                lines.append(f"{threads} threads: ".ljust(overall, "-"))
                before = threads
            cells = [text.center(width) for text, width in zip(row[1:], widths[1:])]
            if self.colorize is not Colorize.NONE:
                cells = [self._color(text, i, j) for j, text in enumerate(cells)]
            lines.append("  |  ".join([row[0].ljust(widths[0]), *cells]))
        label = self.results[0].label
        title = f"[{(' ' + (label or '') + ' ').center(overall - 2, '-')}]"
        units = f"Times are in {common.unit_to_english(self.unit)}s ({self.unit})."
        lines = [title, *lines, "", units]
        if self.warn and any(r.has_warnings for r in self.results):
            lines.append(
                "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return "\n".join(lines) + "\n"

    def _color(self, text: str, row: int, column: int) -> str:
        result = self.cells[row][column]
        return text if result is None else _colored(text, result.median, self._best(row, column))


class Compare:
    """Tables of measurements, one for each label; those of the same task are merged."""

    def __init__(self, results: Iterable[common.Measurement]) -> None:
        self._results: list[common.Measurement] = []
        self.extend_results(results)
        self._trim = self._warn = False
        self._colorize = Colorize.NONE

    def extend_results(self, results: Iterable[common.Measurement]) -> None:
        """Adds measurements."""
        results = list(results)
        for result in results:
            if not isinstance(result, common.Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(result)} instead."
                )
        self._results += results

    def trim_significant_figures(self) -> None:
        """Shows the digits that count."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Shows the best in colour."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Shows which measurements vary much."""
        self._warn = True

    def __str__(self) -> str:
        groups: dict[Any, list] = {}
        for result in common.Measurement.merge(self._results):
            groups.setdefault(result.label, []).append(result)
        options = (self._colorize, self._trim, self._warn)
        return "\n".join(_Table(group, *options).render() for group in groups.values())

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))
