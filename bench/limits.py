"""What the machine can do, and what bounds a kernel: the suite `kernels` measures it with them."""

from __future__ import annotations

import statistics
import subprocess
import tempfile

import kernel_cases
import part
from process import FRAMEWORKS, ROOT, Worker
from table import Row


class Yardsticks:
    """What the machine can do while a kernel is timed: the yardstick of its case, in processes of
    their own, between its repetitions. On a shared machine the limit itself changes within minutes.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.frameworks = {f: Worker(f, threads) for f in FRAMEWORKS}
        with tempfile.TemporaryDirectory() as folder:
            self.peak = {"peak": Worker("", threads, [compiled_peak(folder)])}
            self.peak["peak"].ask("peak", "f32", 0)  # it runs; its file is no longer needed
        self.suite = self.name = ""
        self.workers: dict[str, Worker] = {}
        self.loops: dict[str, int] = {}
        self.times: dict[str, list[float]] = {}

    def prepare(self, case: str) -> None:
        found = kernel_cases.yardstick(case) or ("", "")
        if found != (self.suite, self.name):
            self.suite, self.name = found
            self.workers = {"peak": self.peak, "": {}}.get(self.suite, self.frameworks)
            answers = {f: w.ask(self.suite, self.name, 0) for f, w in self.workers.items()}
            self.loops = {f: int(n) for f, n in answers.items() if not isinstance(n, str)}
        self.times = {f: [] for f in self.loops}

    def measure(self) -> None:
        for f, loops in self.loops.items():
            took = self.workers[f].ask(self.suite, self.name, loops)
            assert isinstance(took, float), took
            self.times[f].append(took / loops)

    def limit(self, case: str, took: float) -> Row:
        """What the yardstick reaches (bytes or operations a second, of the better framework), and
        the share of it that a case reaches which took so many microseconds."""
        if not self.times:
            return {}
        work = self.threads * PEAK_OPERATIONS
        if self.suite == "kernels":
            work = kernel_cases.BYTES[self.name]
        best = work / min(statistics.median(times) for times in self.times.values())
        rate = (kernel_cases.BYTES | kernel_cases.FLOPS)[case] / took * 1e6
        return {"limit": rate / best, "best": best}

    def close(self) -> None:
        for worker in (self.frameworks | self.peak).values():
            worker.close()


PEAK_OPERATIONS = 1 << 20  # of a loop of peak.cc, on each thread


def compiled_peak(folder: str) -> str:
    program = f"{folder}/peak"
    command = ["c++", "-std=c++20", "-O3", "-march=native", str(ROOT / "bench" / "peak.cc")]
    subprocess.run([*command, "-o", program, "-lpthread"], check=True)
    return program


class Arithmetic:
    """What a kernel takes with its data in the caches: a part of it, on one thread."""

    LEAST = 20e-6  # seconds of a call; calling itself would count in a shorter one

    def __init__(self) -> None:
        self.worker = Worker("taeda", 1)

    def share(self, case: str, took: float, threads: int) -> Row:
        """That time, on as many threads and all of the data, of the microseconds it took there."""
        loops = self.worker.ask("part", case, 0)
        if isinstance(loops, str):  # cut tensors do not fit together
            return {}
        times = [self.worker.ask("part", case, int(loops)) for _ in range(3)]
        took_part = statistics.median(t for t in times if isinstance(t, float)) / int(loops)
        if took_part < self.LEAST * part.PARTS:
            return {}
        return {"arithmetic": took_part * 1e6 / threads / took}

    def close(self) -> None:
        self.worker.close()
