"""What one framework's DataLoader costs, in a process of its own: the suite `loading` of run.py.

    python bench/loading.py taeda 2

prints a JSON list, in the order of MEASURES. Less is better in all of them.
"""

from __future__ import annotations

import gc
import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

framework = importlib.import_module(sys.argv[1] if __name__ == "__main__" else "taeda")
data = importlib.import_module(f"{framework.__name__}.utils.data")
BATCHES = 3000


class Same(data.Dataset):  # type: ignore[misc, name-defined]
    """One small tensor again and again."""

    def __init__(self, n: int) -> None:
        self.n, self.x = n, framework.zeros(4)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, i: int) -> Any:
        return self.x


class Images(Same):
    """3 x 224 x 224 images, cut out of a larger one and scaled."""

    def __init__(self, n: int) -> None:
        super().__init__(n)
        self.x = framework.zeros(3, 256, 256)

    def __getitem__(self, i: int) -> Any:
        return self.x[:, i % 32 : i % 32 + 224, :224], i


class Slow(Same):
    """20 ms a sample, as of a distant disk."""

    def __getitem__(self, i: int) -> Any:
        time.sleep(0.02)
        return self.x


class Objects(data.Dataset):  # type: ignore[misc, name-defined]
    """A list of Python objects, whose reference counts a worker writes when it reads them."""

    def __init__(self, n: int) -> None:
        self.rows: Any = [
            {"name": f"row {i}", "values": [float(i), float(i + 1)]} for i in range(n)
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, i: int) -> Any:
        row = self.rows[i]
        return len(row["name"]), sum(row["values"])


class Work(Objects):
    """The same, of which each takes 0.1 ms to load."""

    def __getitem__(self, i: int) -> Any:
        end = time.perf_counter() + 1e-4
        while time.perf_counter() < end:
            pass
        return super().__getitem__(i)


def fork(dataset: Any, batch_size: int, workers: int, **options: Any) -> Iterator[Any]:
    context = "fork" if workers else None
    loader = data.DataLoader(
        dataset, batch_size, num_workers=workers, multiprocessing_context=context, **options
    )
    return iter(loader)


def seconds_per_item(batches: Iterator[Any], skipped: int) -> float:
    """The seconds a batch, after the first ones."""
    for _ in range(skipped):
        next(batches)
    begin = time.perf_counter()
    n = sum(1 for _ in batches)
    return (time.perf_counter() - begin) / n


def batch_cost(workers: int) -> Callable[[], float]:
    """Microseconds that a batch takes beyond those of the same batch in this process."""

    def measure() -> float:
        there = seconds_per_item(fork(Same(BATCHES), 1, workers), 200)
        here = seconds_per_item(fork(Same(BATCHES), 1, 0), 200)
        return (there - here) * 1e6

    return measure


def images(workers: int) -> Callable[[], float]:
    """Milliseconds for 1,000 images in batches of 32."""

    def measure() -> float:
        return seconds_per_item(fork(Images(32 * 100), 32, workers), 10) / 32 * 1e6

    return measure


def slow_samples() -> float:
    """The time of two workers with samples that wait, over that of this process."""
    begin = time.perf_counter()
    for _ in fork(Slow(200), 4, 0):
        pass
    one = time.perf_counter() - begin
    batches = fork(Slow(204), 4, 2)
    next(batches)
    begin = time.perf_counter()
    for _ in batches:
        pass
    return (time.perf_counter() - begin) / one


FIRST_BATCH = """
import time
from {0}.utils.data import DataLoader
if __name__ == "__main__":
    begin = time.perf_counter()
    next(iter(DataLoader(range(8), num_workers=2, multiprocessing_context="forkserver")))
    print(time.perf_counter() - begin)
"""


def first_batch() -> float:
    """Seconds to the first batch of workers of a fork server, in a new program."""
    path = Path(__file__).with_name("_first_batch.py")
    path.write_text(FIRST_BATCH.format(framework.__name__))
    try:
        return float(subprocess.check_output([sys.executable, str(path)], text=True).split()[-1])
    finally:
        path.unlink()


def private_megabytes(pid: int) -> float:
    """Without pages of files that only this process has mapped just now: others find them there."""
    total = private = 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if line.startswith(("Private_Clean", "Private_Dirty")):
            private += int(line.split()[1])
        elif line.startswith("Anonymous"):
            total, private = total + min(private, int(line.split()[1])), 0
    return total / 1024


def growth_of_private_memory(
    kind: Callable[[int], Any], workers: int = 1, batches: int = 10_000
) -> float:
    """Workers' private memory after so many batches of Python objects, over that after ten: the
    most of what it is at each further tenth, since it goes up and down."""
    dataset = kind(64 * batches)
    gc.collect()
    loading = fork(dataset, 64, workers, shuffle=True)
    pids = [worker.pid for worker in loading._workers]  # type: ignore[attr-defined]
    for _ in range(10):
        next(loading)
    before = sum(map(private_megabytes, pids))
    after = []
    for i in range(11, batches - 10):
        next(loading)
        if i % (batches // 10) == 0:
            after.append(sum(map(private_megabytes, pids)))
    return max(after) / before


def shared_objects(n: int) -> Any:
    """The same in a SharedList, which PyTorch has not."""
    dataset = Objects(n)
    if framework.__name__ == "taeda":
        dataset.rows = data.SharedList(dataset.rows)
    return dataset


def kept_batches() -> float:
    """Which of 20,000 batches, all kept, is the first that does not come with 1,024 descriptors
    (0: none), counted from the end."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    kept = []
    try:
        for batch in fork(Same(20_000), 1, 1):
            kept.append(batch)
    except (RuntimeError, OSError):
        return float(20_000 - len(kept))
    return 0.0


# name, unit, the most that taeda may take, what is measured
MEASURES: list[tuple[str, str, float, Callable[[], float]]] = [
    ("a batch's cost, one worker", "us", 60, batch_cost(1)),
    ("a batch's cost, two workers", "us", 60, batch_cost(2)),
    ("1,000 images, this process", "ms", 86, images(0)),
    ("1,000 images, two workers", "ms", 141, images(2)),
    ("samples that wait, two workers over none", "x", 0.53, slow_samples),
    ("first batch, fork server", "s", 0.2, first_batch),
    ("private memory of a list's two readers, after 10,000 batches over after 10", "x", 1.1,
     lambda: growth_of_private_memory(Objects, 2)),
    ("the same of 2,500 batches, 0.1 ms a sample", "x", 1.1,
     lambda: growth_of_private_memory(Work, 2, 2_500)),
    ("the same of a SharedList", "x", 1.1, lambda: growth_of_private_memory(shared_objects)),
    ("missing of 20,000 kept batches", "", 0, kept_batches),
]  # fmt: skip


def main() -> None:
    framework.set_num_threads(int(sys.argv[2]))
    print(json.dumps([measure() for *_, measure in MEASURES]))


if __name__ == "__main__":
    main()
