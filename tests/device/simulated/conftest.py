"""Tests on simulated CUDA devices: `TAEDA_CUDA=sim:2 pytest tests/device/simulated`; else left out.

The driver is chosen once a process, so these run in a process of their own (tools/run_tests.py).
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.simulator import Simulator, loaded

if os.environ.get("TAEDA_CUDA") != "sim:2":
    collect_ignore_glob = ["*.py"]


@pytest.fixture(scope="session")
def simulator() -> Simulator:
    return loaded()


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    """Each test leaves the devices idle, the current device and stream as they were."""
    import taeda

    yield
    taeda.cuda.set_device(0)
    for device in range(2):
        taeda.cuda.set_stream(taeda.cuda.default_stream(device))
        taeda.cuda.synchronize(device)
    taeda.cuda.set_device(0)


@pytest.fixture
def late(simulator: Simulator) -> None:
    """Work runs as late as it may, whatever the schedule of the session."""
    simulator.schedule(0)


@pytest.fixture
def quiet_fallback() -> Iterator[None]:
    """Operators that run on the CPU do not warn."""
    from taeda import _C

    _C._set_fallback("quiet")
    yield
    _C._set_fallback("warn")


@pytest.fixture
def deterministic() -> Iterator[None]:
    import taeda

    taeda.use_deterministic_algorithms(True)
    yield
    taeda.use_deterministic_algorithms(False)


@pytest.fixture
def bits(simulator: Simulator) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """The result of a call, of the same bits in three orders of threads, on the CPU."""
    import taeda

    def run(call: Callable[[], Any]) -> Any:
        found = []
        for seed in (1, 2, 3):
            simulator.schedule(seed)
            found.append(call().cpu())
        raw = [f.contiguous().view(-1).view(taeda.uint8).numpy() for f in found]
        assert all((r == raw[0]).all() for r in raw)
        return found[0]

    yield run
    simulator.schedule(0)
