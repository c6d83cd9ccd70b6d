"""Tests on simulated CUDA devices: `TAEDA_CUDA=sim:2 pytest tests/device/simulated`; else left out.

The driver is chosen once a process, so these run in a process of their own (tools/run_tests.py).
Those of operators run on a card, too (tests/gpu/cases.py); what needs the simulated driver, or a
second device, is then skipped.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.simulator import Simulator, is_chosen, loaded

DRIVER = os.environ.get("TAEDA_CUDA")
if DRIVER not in ("sim:2", "driver") and "TAEDA_LOADED_KERNELS" not in os.environ:
    collect_ignore_glob = ["*.py"]


def pytest_sessionfinish() -> None:
    """TAEDA_LOADED_KERNELS names a file for the kernels that the tests used."""
    if path := os.environ.get("TAEDA_LOADED_KERNELS"):
        from taeda import _C

        Path(path).write_text(json.dumps(_C._cuda_loaded_kernels(0)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What looks at all kernels comes after the tests that launch them."""
    items.sort(key=lambda item: item.path.name == "test_every_kernel.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """A test of two devices is skipped where there is one."""
    import taeda

    if taeda.cuda.device_count() > 1:
        return (yield)
    try:
        return (yield)
    except (RuntimeError, AssertionError) as error:
        if "invalid device ordinal" not in str(error):
            raise
        pytest.skip("needs a second device")


@pytest.fixture(scope="session")
def simulator() -> Simulator:
    if not is_chosen():
        pytest.skip("needs the simulated driver")
    return loaded()


@pytest.fixture(autouse=True)
def as_found() -> Iterator[None]:
    """Each test leaves the devices idle, the current device and stream as they were."""
    import taeda

    yield
    taeda.cuda.set_device(0)
    for device in range(taeda.cuda.device_count()):
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
