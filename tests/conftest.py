"""What holds for the whole test session."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from tests import simulator

# The tests of devices, and the grid, which makes its tensors on either.
NAMES_DEVICES = re.compile(r"^tests/(device/|ops/test_grid\.py)")


def _spare_the_oracle() -> None:
    """PyTorch ends in SIGILL at its first bfloat16 product in virtual machines that show AMX
    without the sizes of its tiles (leaf 0x1d of CPUID). taeda is tested there by test_onednn.py."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    last_leaf = re.search(r"cpuid level\s*: (\d+)", cpuinfo)
    if "amx_tile" in cpuinfo and last_leaf and int(last_leaf[1]) < 0x1D:
        os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_FP16")


_spare_the_oracle()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        default="cpu",
        help="where tests make their tensors: cuda, also simulated (TAEDA_CUDA=sim)",
    )


def pytest_configure(config: pytest.Config) -> None:
    device = config.getoption("--device")
    os.environ["TAEDA_TEST_DEVICE"] = device
    if device != "cpu":
        from taeda import _C

        _C._set_fallback("quiet")


@pytest.fixture(scope="session", autouse=True)
def no_reference_kernels() -> Iterator[None]:
    """oneDNN's reference implementations take a thousand times as long as its others: whatever the
    session's tests have asked for, none is in use."""
    yield
    if "taeda" in sys.modules:
        from taeda import _C

        slow = [name for name in _C._implementations() if " ref" in name]
        assert not slow, slow


def default_device(config: pytest.Config, nodeid: str) -> AbstractContextManager:
    """Tests that name no device make their tensors on that of ``--device``."""
    device = config.getoption("--device")
    if device == "cpu" or NAMES_DEVICES.search(nodeid):
        return nullcontext()
    from tests import on_device

    return on_device.by_default(device)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    seed()  # constants of modules too
    with default_device(collector.config, collector.nodeid):
        return (yield)


def seed() -> None:
    """A process begins with a seed of its own: what a test draws should not differ in each run."""
    if "taeda" in sys.modules:
        sys.modules["taeda"].manual_seed(0)


def pytest_runtest_setup(item: pytest.Item) -> None:
    seed()
    if simulator.is_chosen():
        simulator.loaded().schedule(simulator.schedule_of(item.nodeid))
    mark = item.get_closest_marker("cpu_only")
    if mark and item.config.getoption("--device") != "cpu":
        pytest.skip(mark.kwargs["reason"])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with default_device(item.config, item.nodeid):
        return (yield)
