"""Tests on simulated CUDA devices: `TAEDA_CUDA=sim:2 pytest tests/device/simulated`; else left out.

The driver is chosen once a process, so these run in a process of their own (tools/run_tests.py).
"""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

if os.environ.get("TAEDA_CUDA") != "sim:2":
    collect_ignore_glob = ["*.py"]


class Simulator:
    """The simulated driver's own functions (src/device/sim/driver.h)."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.taeda_sim_count.restype = ctypes.c_int64
        library.taeda_sim_add.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.c_float,
        ]
        self.planned = SimpleNamespace(
            allocation=lambda n: library.taeda_sim_fail_allocation(ctypes.c_int64(n)),
            launch=lambda n: library.taeda_sim_fail_launch(ctypes.c_int64(n)),
        )

    def count(self, what: str) -> int:
        return self.library.taeda_sim_count(what.encode())

    def schedule(self, seed: int) -> None:
        self.library.taeda_sim_set_schedule(ctypes.c_uint64(seed))

    def add(self, stream: Any, address: int, n: int, value: float = 1.0) -> int:
        """Queues a kernel that adds to n floats; the driver's status."""
        import taeda

        taeda.cuda.mem_get_info(stream.device_index)  # makes the device's context the thread's
        return self.library.taeda_sim_add(stream.cuda_stream, address, n, value)


@pytest.fixture(scope="session")
def simulator() -> Simulator:
    import taeda

    assert taeda.cuda.is_available()
    path = Path(taeda._C.__file__).parent.parent.parent / "lib" / "libtaeda_sim.so"
    return Simulator(ctypes.CDLL(str(path)))


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
def late(simulator: Simulator) -> Iterator[None]:
    """Work runs as late as it may, whatever the schedule of the session."""
    simulator.schedule(0)
    yield
    simulator.schedule(int(os.environ.get("TAEDA_SIM_SCHEDULE", "0")))


@pytest.fixture
def quiet_fallback() -> Iterator[None]:
    """Operators that run on the CPU do not warn."""
    from taeda import _C

    _C._set_fallback("quiet")
    yield
    _C._set_fallback("warn")
