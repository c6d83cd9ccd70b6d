"""A process that may use one CPU computes with one thread: pinned, or in a cgroup with a quota."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Prints the number of threads and, after work that would be shared, of the process's threads.
PROGRAM = """
import os
import taeda
x = taeda.randn(2000, 2000)
((x @ x) + 1).sum()
print(taeda.get_num_threads(), len(os.listdir("/proc/self/task")))
"""

needs_two = pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")


def threads_after(prepare: str) -> list[int]:
    """What PROGRAM prints in a process that ran `prepare` first."""
    environment = {k: v for k, v in os.environ.items() if not k.endswith("NUM_THREADS")}
    command = [sys.executable, "-c", "import os\n" + prepare + PROGRAM]
    output = subprocess.check_output(command, env=environment, text=True)
    return [int(word) for word in output.split()]


@contextlib.contextmanager
def cpu_quota(microseconds: int) -> Iterator[Path]:
    """A new cgroup whose processes get so many microseconds of CPU in 100,000; skips the test
    where the system lets this one make none."""
    first = Path("/sys/fs/cgroup/cpu")
    root = first if first.is_dir() else Path("/sys/fs/cgroup")
    folder = root / f"taeda-test-{os.getpid()}"
    try:
        folder.mkdir()
    except OSError as error:
        pytest.skip(f"cannot make a cgroup: {error}")
    try:
        if not (folder / "cgroup.procs").exists():
            pytest.skip("/sys/fs/cgroup holds no cgroups")
        try:
            if (folder / "cpu.max").exists():
                (folder / "cpu.max").write_text(f"{microseconds} 100000")
            else:
                (folder / "cpu.cfs_period_us").write_text("100000")
                (folder / "cpu.cfs_quota_us").write_text(str(microseconds))
        except OSError as error:
            pytest.skip(f"cannot limit a cgroup's CPU: {error}")
        yield folder
    finally:
        folder.rmdir()


def joining(folder: Path) -> str:
    return f"open({str(folder / 'cgroup.procs')!r}, 'w').write(str(os.getpid()))\n"


@needs_two
def test_quota_of_one_cpu_gives_one_thread() -> None:
    with cpu_quota(100_000) as folder:
        assert threads_after(joining(folder)) == [1, 1]


@needs_two
def test_part_of_a_cpu_is_one_thread() -> None:
    with cpu_quota(50_000) as folder:
        assert threads_after(joining(folder)) == [1, 1]


@needs_two
def test_pinned_to_one_cpu_is_one_thread() -> None:
    pin = "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    assert threads_after(pin) == [1, 1]


@needs_two
def test_without_a_limit_threads_share_the_work() -> None:
    number, running = threads_after("")
    assert number > 1
    assert running > 1
