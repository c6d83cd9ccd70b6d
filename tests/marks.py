"""Marks that tests in several folders share."""

import os

import pytest

SANITIZED = os.environ.get("TAEDA_ALLOCATOR") == "system"  # tools/run_tests.py --sanitize sets it
caching = pytest.mark.skipif(SANITIZED, reason="the sanitizers' builds cache no memory")
