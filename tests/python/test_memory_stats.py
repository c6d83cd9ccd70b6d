"""taeda.cpu: what the allocator says about itself, and running out of memory as an exception."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.marks import caching

import taeda

MEBIBYTE = 1 << 20


@caching
def test_statistics_follow_an_allocation() -> None:
    before = taeda.cpu.memory_stats()
    x = taeda.zeros(8 * MEBIBYTE)  # 32 MiB
    during = taeda.cpu.memory_stats()
    assert (
        during["allocated_bytes.all.current"] - before["allocated_bytes.all.current"]
        == 32 * MEBIBYTE
    )
    assert during["allocation.all.current"] == before["allocation.all.current"] + 1
    assert during["allocated_bytes.all.allocated"] >= before["allocated_bytes.all.allocated"]
    assert during["live_bytes"] - before["live_bytes"] >= 32 * MEBIBYTE
    assert taeda.cpu.memory_reserved() >= taeda.cpu.memory_allocated()
    del x
    after = taeda.cpu.memory_stats()
    assert after["allocated_bytes.all.current"] == before["allocated_bytes.all.current"]
    assert after["allocated_bytes.all.freed"] - before["allocated_bytes.all.freed"] == 32 * MEBIBYTE
    assert taeda.cpu.max_memory_allocated() >= during["allocated_bytes.all.current"]
    taeda.cpu.reset_peak_memory_stats()
    assert taeda.cpu.max_memory_allocated() == taeda.cpu.memory_allocated()
    taeda.cpu.empty_cache()
    assert taeda.cpu.memory_reserved() < during["reserved_bytes.all.current"]


@caching
def test_snapshot_adds_up() -> None:
    x = taeda.zeros(4 * MEBIBYTE)
    stats, segments = taeda.cpu.memory_stats(), taeda.cpu.memory_snapshot()
    assert sum(s["total_size"] for s in segments) == stats["reserved_bytes.all.current"]
    assert sum(s["allocated_size"] for s in segments) == stats["allocated_bytes.all.current"]
    assert len(segments) == stats["segment.all.current"]
    blocks = [b for s in segments for b in s["blocks"]]
    mine = [b for b in blocks if b["address"] == x.data_ptr()]
    assert [b["state"] for b in mine] == ["active_allocated"]
    assert mine[0]["requested_size"] == 16 * MEBIBYTE
    assert all(s["total_size"] == sum(b["size"] for b in s["blocks"]) for s in segments)
    assert "allocated_bytes" in taeda.cpu.memory_summary()


@pytest.fixture
def half() -> Iterator[None]:
    taeda.cpu.set_per_process_memory_fraction(0.5)
    yield
    taeda.cpu.set_per_process_memory_fraction(1.0)


@caching
def test_a_fraction_limits_the_process(half: None) -> None:
    _, limit = taeda.cpu.mem_get_info()
    with pytest.raises(taeda.OutOfMemoryError, match=r"Tried to allocate .* the limit is"):
        taeda.empty(limit + 1, dtype=taeda.uint8)
    with pytest.raises(ValueError, match="Invalid fraction"):
        taeda.cpu.set_per_process_memory_fraction(1.5)


@pytest.mark.parametrize("elements", [2**40, 2**62, 2**63 - 1])
def test_impossible_sizes_name_them(elements: int) -> None:
    with pytest.raises(RuntimeError, match=r"allocate|overflow|too large|elements"):
        taeda.zeros(elements)


PROGRAM = """
import taeda
limit = taeda.cpu.mem_get_info()[1]
assert limit <= 300 << 20, limit
kept = []
try:
    while True:
        kept.append(taeda.ones(5 << 20))
except taeda.OutOfMemoryError as error:
    assert "the limit is 256.00 MiB" in str(error), error
print(len(kept))
"""


def new_cgroup() -> Path | None:
    """A cgroup with a limit of 256 MiB; None where this machine lets us make none."""
    for parent, limit in (("memory", "memory.limit_in_bytes"), (".", "memory.max")):
        folder = Path("/sys/fs/cgroup") / parent / f"taeda-test-{os.getpid()}"
        try:
            folder.mkdir()
            (folder / limit).write_text(str(256 * MEBIBYTE))
            return folder
        except OSError:
            if folder.is_dir():
                folder.rmdir()
    return None


@caching
def test_a_cgroup_limit_is_an_exception() -> None:
    """Filling a container's memory raises; the kernel kills nobody."""
    folder = new_cgroup()
    if folder is None:
        pytest.skip("no cgroup with a memory limit can be made here")
    # the child joins before it starts Python, so that all of it is counted
    command = f'echo $$ > {folder}/cgroup.procs && exec "$0" -c "$1"'
    try:
        done = subprocess.run(
            ["sh", "-c", command, sys.executable, PROGRAM],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
        assert int(done.stdout) >= 4
    finally:
        folder.rmdir()
