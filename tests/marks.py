"""Marks that tests in several folders share."""

import pytest
from tests.children import SANITIZED

limited = pytest.mark.skipif(SANITIZED, reason="a sanitizer needs all of the address space")
caching = pytest.mark.skipif(SANITIZED, reason="the sanitizers' builds cache no memory")

# Hooks and custom functions run without the default device's mode, as in PyTorch.
MADE_IN_BACKWARD = pytest.mark.cpu_only(reason="backward makes tensors on the CPU")
