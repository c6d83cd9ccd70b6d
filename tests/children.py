"""Processes that tests start: where they find the tests' modules, and what they may take. What is
too large fails at once, there by itself."""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

# Set by tools/run_tests.py --sanitize. A sanitizer's shadow is terabytes of address space, and its
# builds cache no memory.
SANITIZED = os.environ.get("TAEDA_ALLOCATOR") == "system"

ROOT = Path(__file__).resolve().parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}


def limit_child(
    memory: int = 4 << 30, cpu_seconds: int | None = None, file_bytes: int | None = None
) -> None:
    """Bounds this process and its children; ``memory`` is address space beyond what it has."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if cpu_seconds is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))
    if not SANITIZED:
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + memory, used + memory))
