"""What the parts of tests/gpu/run.py share: what they are told, and what they find."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASSED, FAILED, SKIPPED, NOT_MEASURED = "passed", "failed", "skipped", "not measured"


@dataclass
class Settings:
    """What holds for all parts."""

    simulated: bool = False  # small sizes; times say nothing
    until: float = float("inf")  # time.monotonic() when the part should have ended
    only: str = ""  # operators whose names match, of parity
    rival: str = ""  # the device of PyTorch's tensors; without one nothing is compared with it
    report: Path | None = None  # the folder of the page, for pictures

    @property
    def late(self) -> bool:
        return time.monotonic() > self.until

    @property
    def torch(self) -> Any:
        """PyTorch, where there is one to compare with; else None."""
        if not self.rival:
            return None
        import torch

        return torch


@dataclass
class Row:
    """One thing that was checked or measured."""

    name: str
    outcome: str = PASSED
    detail: str = ""
    value: float | None = None
    unit: str = ""
    bar: str = ""  # what the value should be, in words: "<= 5 us"


def bar(
    settings: Settings,
    name: str,
    value: float,
    unit: str,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
    what: str = "",
) -> Row:
    """A measurement beside its bound; `what` says where the bound comes from."""
    bound = at_most if at_most is not None else at_least
    if bound is None:
        outcome, words = NOT_MEASURED, ""
    else:
        words = f"{'<=' if at_most is not None else '>='} {bound:.4g} {unit}"
        met = value <= bound if at_most is not None else value >= bound
        outcome = PASSED if met else FAILED
    if settings.simulated:
        return Row(name, NOT_MEASURED, what, None, unit, words)
    return Row(name, outcome, what, value, unit, words)


def checked(name: str, check: Any) -> Row:
    """The row of a check that raises when something is wrong."""
    try:
        detail = check()
    except Exception as error:
        return Row(name, FAILED, f"{type(error).__name__}: {error}"[:800])
    return Row(name, detail=detail or "")


def within_time(settings: Settings, things: Iterable[Any], what: str) -> Iterator[Any]:
    """The things, until time is up; then a Row that counts what was left."""
    things = list(things)
    for i, thing in enumerate(things):
        if settings.late:
            yield Row(what, SKIPPED, f"time was up: {len(things) - i} of {len(things)} left")
            return
        yield thing
