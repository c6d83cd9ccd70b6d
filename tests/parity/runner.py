"""Runs tasks in forked processes; a death or a hang is one finding, and the rest goes on."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from tests.parity import child
from tests.parity.child import Task

SILENCE_S = 150.0  # a worker that says nothing for longer hangs; the machine may be busy


@dataclass(frozen=True)
class Finding:
    """A mismatch: `aspect` is the mode and what differs in it, as in "out strides"."""

    task: Task
    mode: str
    kind: str
    sample: int
    text: str

    @property
    def aspect(self) -> str:
        return f"{self.mode} {self.kind}"

    def __str__(self) -> str:
        task = self.task
        sample = f"{self.sample}@{task.cycle}" if task.cycle else f"{self.sample}"
        return f"{task.title}\t{self.aspect}\t{task.dtype}\t{sample}\t{self.text}"


@dataclass
class Results:
    """Calls by (title, mode, dtype): how many, and how many of them differ, words apart."""

    counts: dict[tuple[str, str, str], list[int]] = field(
        default_factory=lambda: defaultdict(lambda: [0, 0])
    )
    findings: list[Finding] = field(default_factory=list)
    reached: dict[tuple[str, str], int] = field(default_factory=dict)  # samples by (title, dtype)
    calls: int = 0
    skipped: int = 0
    oracle_deaths: int = 0
    exhausted: set[tuple[str, int, str, int]] = field(default_factory=set)
    log: TextIO | None = None  # a line for each finding as it comes

    def add(self, task: Task, mode: str, sample: int, status: str, found: list) -> None:
        if status == "skipped":
            self.skipped += 1
            return
        self.calls += 1
        key = task.title, task.dtype
        self.reached[key] = max(sample, self.reached.get(key, 0))
        count = self.counts[task.title, mode, task.dtype]
        count[0] += 1
        count[1] += any(kind != "words" for kind, _ in found)
        for kind, text in found:
            self.find(Finding(task, mode, kind, sample, text))

    def find(self, finding: Finding) -> None:
        self.findings.append(finding)
        if self.log:
            print(finding, self.calls, file=self.log, flush=True)


class Worker:
    """A forked process and the tasks that it has yet to do."""

    def __init__(self, queue: list[tuple[int, Task]], results: Results, mode: str) -> None:
        self.queue, self.results, self.mode = queue, results, mode
        self.tasks = dict(queue)
        self.current: tuple | None = None
        self.start(0)

    def start(self, done: int) -> None:
        self.reader, writer = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.reader)
            status = 1
            try:
                child.main(self.queue, done, self.mode, writer)
                status = 0
            finally:
                os._exit(status)
        os.close(writer)
        self.heard = time.monotonic()
        self.buffer = b""
        self.current = None

    def read(self) -> bool:
        """Takes what has come; False at the end of the process."""
        data = os.read(self.reader, 1 << 16)
        self.heard = time.monotonic()
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self.take(*json.loads(line))
        return bool(data)

    def take(self, what: str, number: int, *rest) -> None:
        task = self.tasks[number]
        if what in ("theirs", "ours"):
            self.current = (what, number, *rest)
        elif what == "call":
            self.results.add(task, *rest)
        else:
            self.finish(number)
            if what == "harness":
                self.results.find(Finding(task, "harness", "error", -1, rest[0]))
            elif rest[0] < task.count:
                self.results.exhausted.add((task.kind, task.entry, task.dtype, task.cycle))

    def finish(self, number: int) -> None:
        self.queue = [item for item in self.queue if item[0] > number]
        self.current = None

    def ended(self, hang: bool = False) -> bool:
        """After the process ended: starts another where there is more to do."""
        os.close(self.reader)
        if hang:
            os.kill(self.pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        if not self.queue:
            return False
        if self.current is None:
            text = f"ended with status {status} while samples were made"
            self.results.find(Finding(self.queue[0][1], "harness", "end", -1, text))
            self.queue = self.queue[1:]
            if not self.queue:
                return False
            self.start(0)
            return True
        who, _, n, mode, sample = self.current
        text = "no answer in time" if hang else f"ended with status {status}"
        if who == "ours":
            kind = "hang" if hang else "crash"
            self.results.add(self.queue[0][1], mode, sample, "bad", [(kind, text)])
        else:
            self.results.oracle_deaths += 1
        self.start(n + 1)
        return True


def shares(tasks: list[Task], processes: int) -> Iterator[list[tuple[int, Task]]]:
    numbered = list(enumerate(tasks))
    for i in range(processes):
        if numbered[i::processes]:
            yield numbered[i::processes]


def run(
    tasks: list[Task],
    results: Results,
    processes: int = 1,
    mode: str = "",
    stop: Callable[[], bool] = lambda: False,
) -> None:
    """Runs all tasks, or those that are begun before `stop` says so."""
    workers = {worker.reader: worker for worker in _started(tasks, results, processes, mode)}
    while workers and not stop():
        ready, silent = _ready_and_silent(workers)
        for reader in [*ready, *silent]:
            worker = workers.pop(reader)
            if (reader in ready and worker.read()) or worker.ended(hang=reader in silent):
                workers[worker.reader] = worker
    for worker in workers.values():
        os.kill(worker.pid, signal.SIGKILL)
        os.close(worker.reader)
        os.waitpid(worker.pid, 0)


def _ready_and_silent(workers: dict[int, Worker]) -> tuple[list[int], list[int]]:
    """The workers that said something, and those that have said nothing for too long."""
    first = min(worker.heard for worker in workers.values())
    wait = max(0.0, first + SILENCE_S - time.monotonic())
    ready = select.select(list(workers), [], [], wait)[0]
    deadline = time.monotonic() - SILENCE_S
    silent = [reader for reader, worker in workers.items() if worker.heard <= deadline]
    return ready, [reader for reader in silent if reader not in ready]


def _started(tasks: list[Task], results: Results, processes: int, mode: str) -> Iterator[Worker]:
    for share in shares(tasks, processes):
        yield Worker(share, results, mode)
