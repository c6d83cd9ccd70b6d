"""torch.cpu: memory that is cached comes back, and training steps fault no pages in."""

from __future__ import annotations

import resource
from pathlib import Path

from tests.marks import caching

import taeda as torch


def resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@caching
def test_empty_cache_returns_memory() -> None:
    torch.cpu.empty_cache()
    before, live = resident(), torch.cpu.memory_stats()["live_bytes"]
    tensors = [torch.ones(4 << 20) for _ in range(4)]  # 64 MB
    assert torch.cpu.memory_stats()["live_bytes"] - live >= 64 << 20
    assert resident() - before > 60 << 20
    del tensors
    assert torch.cpu.memory_stats()["live_bytes"] == live
    assert torch.cpu.memory_stats()["reserved_bytes.all.current"] >= 64 << 20
    torch.cpu.empty_cache()
    assert torch.cpu.memory_stats()["reserved_bytes.all.current"] < 64 << 20
    assert resident() - before < 8 << 20


@caching
def test_training_steps_fault_no_pages_in() -> None:
    model = torch.nn.Sequential(
        torch.nn.Linear(300, 400), torch.nn.ReLU(), torch.nn.Linear(400, 10)
    )
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(512, 300), torch.randint(0, 10, (512,))

    def step() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the C library trims what oneDNN frees on other threads
    try:
        for _ in range(5):
            step()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(20):
            step()
        assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 40
    finally:
        torch.set_num_threads(threads)


def test_the_cpu_is_a_device() -> None:
    assert torch.cpu.is_available() and torch.cpu.device_count() == 1
    assert torch.cpu.current_device() == "cpu"
    torch.cpu.synchronize()
    with torch.cpu.stream(None):
        pass
