"""What holds for the whole test session."""

import os
import sys
from collections.abc import Iterator

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--device",
        default="cpu",
        help="where the operator grid makes its tensors: cuda, also simulated (TAEDA_CUDA=sim)",
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
