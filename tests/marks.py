"""Marks that tests in several folders share."""

import os

import pytest

SANITIZED = os.environ.get("TAEDA_ALLOCATOR") == "system"  # tools/run_tests.py --sanitize sets it
# An address sanitizer's shadow is terabytes of address space: no RLIMIT_AS in these builds.
limited = pytest.mark.skipif(SANITIZED, reason="a sanitizer needs all of the address space")
caching = pytest.mark.skipif(SANITIZED, reason="the sanitizers' builds cache no memory")
