"""The parent: forks a child a batch, survives what kills it, and says what did."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tests.fuzz import child, programs
from tests.fuzz.names import Names
from tests.fuzz.programs import Program

HANG_CPU_SECONDS = 5.0  # of its own time, so that a busy machine makes nothing hang
HANG_WALL_SECONDS = 60.0
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass
class Outcome:
    """What became of one list of programs."""

    cause: str = ""  # "" when all ended, else "SIGSEGV", "exit status 1", "hang"
    at: int = -1  # the program that did it
    results: int = 0
    exceptions: int = 0
    notes: list[str] = field(default_factory=list)  # lines of JSON that the child wrote
    output: str = ""


@dataclass
class Finding:
    kind: str  # death, hang, wrong message
    cause: str
    target: str
    seed: int
    batch: int
    programs: list[Program]
    output: str = ""


def cpu_seconds(pid: int) -> float:
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


class Child:
    """A child at work; work(progress, report) counts its steps in `progress`."""

    def __init__(
        self, work: Callable[[child.Progress, int], None], limit: float = HANG_CPU_SECONDS
    ):
        self.progress = child.Progress()
        self.limit = limit
        self.hung = False
        self.seen, self.since = -2, time.monotonic()
        self.pid, self.log = child.spawn(lambda report: work(self.progress, report))

    def poll(self) -> Outcome | None:
        """The outcome once the child has ended; ends it when a program takes too long."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid:
            return self._outcome(status)
        current, _, _, started = self.progress.read()
        now = time.monotonic()
        if current != self.seen:
            self.seen, self.since = current, now
        used = cpu_seconds(self.pid) - started if current >= 0 else 0.0
        if used > self.limit or now - self.since > HANG_WALL_SECONDS:
            self.hung = True
            os.kill(self.pid, signal.SIGKILL)
        return None

    def wait(self) -> Outcome:
        while True:
            outcome = self.poll()
            if outcome:
                return outcome
            time.sleep(0.005)

    def _outcome(self, status: int) -> Outcome:
        at, results, exceptions, _ = self.progress.read()
        outcome = Outcome("", at, results, exceptions)
        if self.hung:
            outcome.cause = "hang"
        elif os.WIFSIGNALED(status):
            outcome.cause = signal.Signals(os.WTERMSIG(status)).name
        elif os.WEXITSTATUS(status):
            outcome.cause = f"exit status {os.WEXITSTATUS(status)}"
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").splitlines()
        outcome.notes = [line for line in lines if line.startswith('{"')]
        rest = [line for line in lines if not line.startswith('{"')]
        said = "\n".join(rest)
        report = re.search(r"Sanitizer: |runtime error: ", said)  # which ends with pages of numbers
        outcome.output = said[max(0, report.start() - 100) :][:3000] if report else said[-1500:]
        self.log.close()
        return outcome


def start(framework: str, batch: list[Program], limit: float = HANG_CPU_SECONDS) -> Child:
    """Runs programs in a child."""
    return Child(lambda progress, report: child.run(framework, batch, progress, report), limit)


class Run:
    """All batches of a run, `jobs` at a time, and what was found."""

    def __init__(self, torch: ModuleType, names: Names, seed: int, size: int, jobs: int):
        self.torch, self.names = torch, names
        self.seed, self.size, self.jobs = seed, size, jobs
        self.calls = self.results = self.exceptions = 0
        self.findings: list[Finding] = []
        self.targets: Counter[str] = Counter()
        self.reached: set[str] = set()
        self.waiting: list[tuple[int, list[Program]]] = []

    def batch(self, number: int, count: int) -> list[Program]:
        return programs.batch(self.torch, self.names, self.seed, number, count)

    def run(self, calls: int, first: int = 0) -> None:
        sizes = [self.size] * (calls // self.size) + [calls % self.size] * (calls % self.size > 0)
        todo = [(first + i, n) for i, n in enumerate(sizes)][::-1]
        running: list[tuple[int, list[Program], Child]] = []
        while todo or running or self.waiting:
            while len(running) < self.jobs and (todo or self.waiting):
                if self.waiting:
                    number, batch = self.waiting.pop()
                else:
                    number, count = todo.pop()
                    batch = self.batch(number, count)
                running.append((number, batch, start(self.torch.__name__, batch)))
            time.sleep(0.005)
            still = []
            for number, batch, started in running:
                outcome = started.poll()
                if outcome:
                    self.take(number, batch, outcome)
                else:
                    still.append((number, batch, started))
            running = still

    def take(self, number: int, batch: list[Program], outcome: Outcome) -> None:
        done = batch if not outcome.cause else batch[: outcome.at + 1]
        self.calls += len(done)
        self.targets.update(p.target for p in done)
        self.results += outcome.results
        self.exceptions += outcome.exceptions
        for note in map(json.loads, outcome.notes):
            self.reached.update(note.get("reached", ()))
            if "wrong" in note:
                p = batch[note["wrong"]]
                error = note["error"]
                found = Finding("wrong message", error, p.target, self.seed, number, [p])
                self.findings.append(found)
        if not outcome.cause:
            return
        kind = "hang" if outcome.cause == "hang" else "death"
        if outcome.at >= len(batch):  # after all programs, at its end
            outcome.at = len(batch) - 1
        found = Finding(kind, outcome.cause, batch[outcome.at].target, self.seed, number, done)
        found.output = outcome.output
        self.findings.append(found)
        self.waiting.append((number, batch[outcome.at + 1 :]))

    def count(self, kind: str) -> int:
        return sum(f.kind == kind for f in self.findings)

    def summary(self) -> str:
        counts: dict[str, Any] = {
            "calls": self.calls,
            "results": self.results,
            "exceptions": self.exceptions,
            "deaths": self.count("death"),
            "hangs": self.count("hang"),
            "wrong messages": self.count("wrong message"),
        }
        line = ", ".join(f"{n:,} {what}" for what, n in counts.items())
        names = f"{len(self.targets):,} names called, {len(self.reached):,} of them with a result"
        return f"{self.torch.__name__}: {line}; {names}; seed {self.seed}"
