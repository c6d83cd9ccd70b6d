"""Epochs of a small DataLoader whose workers are killed at random: nothing may be left behind.

    python tools/soak_loader.py --epochs 1000 --method fork

Every epoch gives the right batches or raises the error of a dead worker. Afterwards the process has
the descriptors, the children and the shared memory that it had before, and about its size.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import taeda
from taeda.utils.data import DataLoader, Dataset

SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGINT]
METHODS = ["fork", "forkserver", "spawn", "thread"]
WARM_UP = 20  # epochs before the process is measured
GROWTH_MEGABYTES = 16.0  # that the allocators may keep
SAMPLES, BATCH = 48, 4


class Rows(Dataset):
    """Rows that are large enough, as a batch, for blocks of their own."""

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, i: int) -> Any:
        return taeda.full((4000,), float(i)), f"row {i}"


def children() -> set[int]:
    """The processes that this one started and that are there still."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(entry.name))
    return found


def measure() -> dict[str, Any]:
    """What must not grow."""
    taeda.empty(1).share_memory_()  # whose allocator drops its pipes to children that have ended
    gc.collect()
    resident = int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "children": len(children()),
        "threads": threading.active_count(),
        "held": taeda._C._WorkerChannel.held(),  # type: ignore[attr-defined]
        "areas": Path("/proc/self/maps").read_text().count("taeda_loader"),
        "megabytes": resident,
    }


def kill_later(pids: list[int], draw: random.Random) -> threading.Timer:
    """Sends a signal to one of the processes, some milliseconds from now."""

    def kill() -> None:
        try:
            os.kill(draw.choice(pids), draw.choice(SIGNALS))
        except ProcessLookupError:
            pass

    timer = threading.Timer(draw.random() * 0.05, kill)
    timer.start()
    return timer


def epoch(loader: Any, draw: random.Random, kills: float = 0.5) -> str:
    """How a pass ended: "whole", "left" or "killed"; AssertionError for wrong batches. Threads are
    not killed."""
    batches = iter(loader)
    timer = None
    if draw.random() < kills and loader.multiprocessing_context != "thread":
        timer = kill_later([worker.pid for worker in batches._workers], draw)
    leave_at = draw.randrange(SAMPLES // BATCH) if draw.random() < 0.3 else -1
    try:
        for i, (rows, names) in enumerate(batches):
            expected = list(range(i * BATCH, (i + 1) * BATCH))
            assert rows[:, -1].tolist() == expected, (i, rows[:, -1])
            assert list(names) == [f"row {j}" for j in expected]
            if i == leave_at:
                return "left"
        assert i == SAMPLES // BATCH - 1
        return "whole"
    except RuntimeError as error:
        assert "exited unexpectedly" in str(error), error
        return "killed"
    finally:
        if timer is not None:
            timer.cancel()
            timer.join()


def soak(
    epochs: int,
    method: str,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
    kills: float = 0.5,
    persistent: float = 0.3,
) -> dict[str, int]:
    """Runs so many epochs; how they ended. AssertionError when something is left.

    Args:
        kills: the part of the epochs in which a worker gets a signal.
        persistent: the part that persistent workers load; the others start their own.
    """
    draw = random.Random(seed)
    ends = {"whole": 0, "left": 0, "killed": 0}
    kept: Any = DataLoader(
        Rows(), BATCH, num_workers=2, multiprocessing_context=method, persistent_workers=True
    )
    before: dict[str, Any] = {}
    begin = time.monotonic()
    for i in range(WARM_UP + epochs):
        if i == WARM_UP:
            if kept._iterator is not None:
                kept._iterator._shutdown_workers()
            before = measure()
        fresh: Any = DataLoader(Rows(), BATCH, num_workers=2, multiprocessing_context=method)
        ends[epoch(kept if draw.random() < persistent else fresh, draw, kills)] += 1
        if i % 100 == 99:
            report(f"{i + 1} epochs, {time.monotonic() - begin:.0f} s, {ends}, {measure()}")
    if kept._iterator is not None:
        kept._iterator._shutdown_workers()
    after = measure()
    growth = after.pop("megabytes") - before.pop("megabytes")
    report(f"before {before}, after {after}, growth {growth:.1f} MB")
    more = [what for what, amount in after.items() if amount > before[what]]
    assert not more, f"more {more}: before {before}, after {after}"
    assert growth < GROWTH_MEGABYTES, f"the process grew by {growth:.1f} MB"
    return ends


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--method", default="fork", choices=METHODS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=float, default=0.5, help="part of the epochs")
    parser.add_argument("--persistent", type=float, default=0.3, help="part of the epochs")
    args = parser.parse_args()

    def report(text: str) -> None:
        print(text, flush=True)

    print(soak(args.epochs, args.method, args.seed, report, args.kills, args.persistent))


if __name__ == "__main__":
    main()
