"""The simulated CUDA driver's own functions (src/device/sim/driver.h), for tests."""

import ctypes
import functools
import os
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any


class Simulator:
    """Planned faults, counters, the schedule; `loaded()` is the one of this process."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        library.taeda_sim_count.restype = library.taeda_sim_runs.restype = ctypes.c_int64
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

    def runs(self, kernel: str) -> int:
        """How often a kernel has run, to its end."""
        return self.library.taeda_sim_runs(kernel.encode())

    def schedule(self, seed: int) -> None:
        self.library.taeda_sim_set_schedule(ctypes.c_uint64(seed))

    def add(self, stream: Any, address: int, n: int, value: float = 1.0) -> int:
        """Queues a kernel that adds to n floats; the driver's status."""
        import taeda

        taeda.cuda.mem_get_info(stream.device_index)  # makes the device's context the thread's
        return self.library.taeda_sim_add(stream.cuda_stream, address, n, value)


@functools.cache
def loaded() -> Simulator:
    import taeda

    assert taeda.cuda.is_available()
    path = Path(taeda._C.__file__).parent.parent.parent / "lib" / "libtaeda_sim.so"
    return Simulator(ctypes.CDLL(str(path)))


def is_chosen() -> bool:
    return os.environ.get("TAEDA_CUDA", "").startswith("sim")


def schedule_of(test: str) -> int:
    """In which order work runs: TAEDA_SIM_SCHEDULE, else by the test's name as late as may be (0),
    at once (1), or in one of two mixtures, so that a session tries them all."""
    return int(os.environ.get("TAEDA_SIM_SCHEDULE", zlib.crc32(test.encode()) % 4))
