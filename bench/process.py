"""Processes that measure when asked, on cores of their own choosing."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FRAMEWORKS = ("taeda", "torch")
# Threads of the process that was timed before (OpenMP's, above all) look for work for some
# milliseconds, on the cores of the next one.
PAUSE = 0.015


def machine() -> str:
    """The processor and the cores that may be used: for the head of a table."""
    model = "unknown processor"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return f"{model}, {len(os.sched_getaffinity(0))} cores"


def pinned(threads: int) -> list[str]:
    """The start of a command that runs on `threads` cores: every thread of it, from its first."""
    cpus = sorted(os.sched_getaffinity(0))[-threads:]
    return ["taskset", "-c", ",".join(map(str, cpus))]


def pinned_python(threads: int) -> list[str]:
    return [*pinned(threads), sys.executable]


class Worker:
    """A process on `threads` cores that times cases when asked: those of one framework, by
    worker.py, or what another program answers."""

    def __init__(self, framework: str, threads: int, program: list[str] | None = None) -> None:
        program = program or [sys.executable, str(ROOT / "bench" / "worker.py"), framework]
        # NumPy's OpenBLAS would keep a core busy for some 20 ms after each product otherwise.
        environment = os.environ | {"OPENBLAS_THREAD_TIMEOUT": "4"}
        self.process = subprocess.Popen(
            [*pinned(threads), *program, str(threads)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip

    def ask(self, suite: str, name: str, loops: int) -> float | str:
        assert self.process.stdin and self.process.stdout
        time.sleep(PAUSE)
        self.process.stdin.write(f"{suite}\t{name}\t{loops}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer:
            return f"error: the process died with status {self.process.wait()}"
        return answer if answer.startswith("error") else float(answer)

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


class Model:
    """A process on `threads` cores that trains one model of bench/models when asked."""

    def __init__(self, framework: str, name: str, threads: int) -> None:
        command = [*pinned_python(threads), str(ROOT / "bench" / "models" / "worker.py")]
        command += ["--serve"]
        command += ["--framework", framework, "--model", name, "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        units, self.unit = self.answer()
        self.units, self.megabytes, self.faults = int(units), 0.0, 0.0

    def answer(self) -> list[str]:
        assert self.process.stdout
        words = self.process.stdout.readline().split()
        if not words:
            raise RuntimeError(f"the process ended with status {self.process.wait()}")
        return words

    def seconds(self, steps: int) -> float:
        assert self.process.stdin
        time.sleep(PAUSE)
        self.process.stdin.write(f"{steps}\n")
        self.process.stdin.flush()
        took, megabytes, faults = self.answer()
        self.megabytes, self.faults = float(megabytes), int(faults) / steps
        return float(took)

    def close(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()
