"""What holds for the whole test session."""

import sys
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def no_reference_kernels() -> Iterator[None]:
    """oneDNN's reference implementations take a thousand times as long as its others: whatever the
    session's tests have asked for, none is in use."""
    yield
    if "taeda" in sys.modules:
        from taeda import _C

        slow = [name for name in _C._implementations() if " ref" in name]
        assert not slow, slow
