"""A process that makes calls and writes a line of JSON before and after each, to a pipe.

It is forked from one that has read the databases, and may die: the last line says in which call,
and whether PyTorch or taeda was at work.
"""

from __future__ import annotations

import json
import os
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from tests.children import limit_child
from tests.parity import cases, databases, judge, modules, optimizers
from tests.parity.translate import NotMirrored


@dataclass(frozen=True)
class Kind:
    """A database: its entries, and the calls of one of them. `whole`: all samples in one task;
    `drawn`: a cycle after the first has other calls."""

    entries: Callable[[], list[Any]]
    calls: Callable[..., Iterator[cases.Call]]
    whole: bool = False
    drawn: bool = False


KINDS = {
    "operator": Kind(databases.operators, cases.operator_calls, drawn=True),
    "error": Kind(databases.operators, cases.error_calls, whole=True),
    "wrong": Kind(databases.operators, cases.wrong_calls, whole=True),
    "module": Kind(databases.modules, modules.calls),
    "optimizer": Kind(databases.optimizers, optimizers.calls),
}


@dataclass(frozen=True)
class Task:
    """Samples of one entry of a database in one dtype."""

    kind: str
    entry: int
    title: str
    dtype: str
    start: int
    count: int
    modes: tuple[str, ...] = ()  # all where it is empty
    cycle: int = 0  # which numbers are drawn

    def calls(self) -> Iterator[cases.Call]:
        kind = KINDS[self.kind]
        dtype = getattr(torch, self.dtype) if self.dtype else None
        return kind.calls(kind.entries()[self.entry], dtype, self.start, self.count, self.cycle)


def make(call: cases.Call, tell: Callable[..., None]) -> tuple[str, judge.Findings]:
    """Makes one call on both sides: "ok", "bad" or "skipped", and the findings."""
    tell("theirs")
    theirs = call.theirs()
    if cases.skipped(call, theirs):
        return "skipped", []
    tell("ours")
    ours = call.ours()
    if isinstance(ours.error, NotMirrored):
        return "skipped", []
    found = cases.compare(call, theirs, ours)
    return ("bad" if found else "ok"), found


def run_task(number: int, task: Task, done: int, mode: str, tell: Callable[..., None]) -> None:
    """The task's calls but for the first `done`; only in modes that match `mode`."""
    samples: set[int] = set()
    for n, call in enumerate(islice(task.calls(), done, None), done):
        samples.add(call.sample)
        wanted = not task.modes or call.mode in task.modes
        if not wanted or not re.fullmatch(mode or ".*", call.mode):
            continue

        def announce(who: str, n: int = n, call: cases.Call = call) -> None:
            tell(who, number, n, call.mode, call.sample)

        status, found = make(call, announce)
        tell("call", number, call.mode, call.sample, status, found)
    tell("end", number, len(samples))


def main(tasks: list[tuple[int, Task]], done: int, mode: str, pipe: int) -> None:
    """Runs tasks in a forked process, of the first one all calls after the first `done`."""
    torch.set_num_threads(1)
    limit_child(memory=6 << 30)
    warnings.simplefilter("ignore")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def tell(*words: Any) -> None:
        os.write(pipe, (json.dumps(words) + "\n").encode())

    for number, task in tasks:
        try:
            run_task(number, task, done, mode, tell)
        except Exception:
            text = traceback.format_exc().strip().splitlines()
            tell("harness", number, " / ".join(line.strip() for line in text[-3:]))
        done = 0
