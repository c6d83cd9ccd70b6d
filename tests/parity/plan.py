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
    if kind == "error":
        return [""]
    if kind == "optimizer":
        return list(FLOATS)
    found = sorted(str(dtype).removeprefix("torch.") for dtype in info.dtypes)
    return [name for name in found if name in MODULE_DTYPES] if kind == "module" else found


def everything(start: int, count: int, only: str = "") -> Iterator[Task]:
    """All entries in all of their dtypes, with samples from `start` on."""
    for kind, database in KINDS.items():
        for entry, info in enumerate(database.entries()):
            title = databases.title(info)
            if only and not re.fullmatch(only, title):
                continue
            samples = 1000 if kind == "error" else count
            if kind == "error" and start > 0:
                continue
            for dtype in dtypes(kind, info):
                yield Task(kind, entry, title, dtype, start, samples)


def again(log: str) -> list[Task]:
    """The calls of which the log of an earlier run says that they differed."""
    modes: dict[tuple[bool, str, str, int], set[str]] = {}
    for line in log.splitlines():
        title, aspect, dtype, sample, _ = line.split("\t", 4)
        mode, _, kind = aspect.rpartition(" ")
        if kind != "words":
            key = mode == "error", title, dtype, int(sample)
            modes.setdefault(key, set()).add(mode)
    by_title: dict[str, list[Task]] = {}
    for task in everything(0, 1):
        by_title.setdefault(task.title, []).append(task)
    return [
        replace(
            task, start=sample, count=1, modes=tuple(sorted(modes[error, title, dtype, sample]))
        )
        for error, title, dtype, sample in sorted(modes)
        for task in by_title.get(title, ())
        if (task.kind == "error") == error and task.dtype == dtype
    ]


def rounds(seed: int, only: str = "") -> Iterator[list[Task]]:
    """One sample of everything, then the next two, four and so on, each in random order."""
    start, count = 0, 1
    while count < 1 << 16:
        tasks = list(everything(start, count, only))
        random.Random(seed).shuffle(tasks)
        yield tasks
        start, count = start + count, 2 * count


def selection(seed: int) -> list[Task]:
    """For each entry one dtype and one of its first six samples."""
    chosen: dict[tuple[str, int], list[Task]] = {}
    for task in everything(0, 1):
        chosen.setdefault((task.kind, task.entry), []).append(task)
    draw = random.Random(seed)
    picked = [draw.choice(tasks) for tasks in chosen.values()]
    return [
        task if task.kind == "error" else Task(**(vars(task) | {"start": draw.randrange(6)}))
        for task in picked
    ]
