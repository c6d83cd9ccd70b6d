"""Which tasks a run of N calls consists of: a few samples of everything first, then more."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.parity import databases
from tests.parity.child import KINDS, Task

FLOATS = ("float64", "float32")
MODULE_DTYPES = ("float32", "float64", "bfloat16", "complex64")


def dtypes(kind: str, info: Any) -> list[str]:
    if KINDS[kind].whole:
        return [""]
    if kind == "optimizer":
        return list(FLOATS)
    found = sorted(str(dtype).removeprefix("torch.") for dtype in info.dtypes)
    return [name for name in found if name in MODULE_DTYPES] if kind == "module" else found


def everything(start: int, count: int, only: str = "", cycle: int = 0) -> Iterator[Task]:
    """All entries in all of their dtypes, with samples from `start` on; in a cycle after the first,
    those that have other samples then."""
    for kind, database in KINDS.items():
        if (database.whole and start > 0) or (cycle > 0 and not database.drawn):
            continue
        for entry, info in enumerate(database.entries()):
            title = databases.title(info)
            if only and not re.fullmatch(only, title):
                continue
            samples = 1000 if database.whole else count
            for dtype in dtypes(kind, info):
                yield Task(kind, entry, title, dtype, start, samples, cycle=cycle)


def again(log: str) -> list[Task]:
    """The calls of which the log of an earlier run says that they differed."""
    modes: dict[tuple[str, str, str, int, int], set[str]] = {}
    for line in log.splitlines():
        title, aspect, dtype, sample, _ = line.split("\t", 4)
        mode, _, kind = aspect.rpartition(" ")
        index, _, cycle = sample.partition("@")
        if kind != "words":
            key = _whole(mode), title, dtype, int(index), int(cycle or 0)
            modes.setdefault(key, set()).add(mode)
    by_title: dict[str, list[Task]] = {}
    for task in everything(0, 1):
        by_title.setdefault(task.title, []).append(task)
    return [
        replace(task, start=sample, count=1, cycle=cycle, modes=tuple(sorted(modes[key])))
        for key in sorted(modes)
        for whole, title, dtype, sample, cycle in [key]
        for task in by_title.get(title, ())
        if _whole(task.kind) == whole and task.dtype == dtype
    ]


def _whole(name: str) -> str:
    """The kind of tasks, or their mode, which has the same name, where all samples are one task."""
    return name if name in KINDS and KINDS[name].whole else ""


def rounds(seed: int, only: str = "", cycle: int = 0) -> Iterator[list[Task]]:
    """One sample of everything, then the next two, four and so on, each in random order."""
    start, count = 0, 1
    while count < 1 << 16:
        tasks = list(everything(start, count, only, cycle))
        random.Random(seed).shuffle(tasks)
        yield tasks
        start, count = start + count, 2 * count


def selection(seed: int) -> list[Task]:
    """For each entry one dtype and one of its first six samples, four of its first twenty wrong
    calls, and all wrong ones of the databases."""
    chosen: dict[tuple[str, int], list[Task]] = {}
    for task in everything(0, 1):
        chosen.setdefault((task.kind, task.entry), []).append(task)
    draw = random.Random(seed)
    picked = [draw.choice(tasks) for tasks in chosen.values()]
    parts = {"error": (0, 1000), "wrong": (draw.randrange(17), 4)}
    return [
        replace(task, start=start, count=count)
        for task in picked
        for start, count in [parts.get(task.kind) or (draw.randrange(6), 1)]
    ]
