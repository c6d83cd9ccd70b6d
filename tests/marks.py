"""Marks that tests in several folders share."""

import os

import pytest

SANITIZED = os.environ.get("TAEDA_ALLOCATOR") == "system"  # tools/run_tests.py --sanitize sets it
# An address sanitizer's shadow is terabytes of address space: no RLIMIT_AS in these builds.
limited = pytest.mark.skipif(SANITIZED, reason="a sanitizer needs all of the address space")
caching = pytest.mark.skipif(SANITIZED, reason="the sanitizers' builds cache no memory")

# Hooks and custom functions run without the default device's mode, as in PyTorch.
MADE_IN_BACKWARD = pytest.mark.cpu_only(reason="backward makes tensors on the CPU")
