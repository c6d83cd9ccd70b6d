"""Marks for NVIDIA's profilers: not in this build, as in PyTorch's CPU build."""

from __future__ import annotations

from typing import Any, NoReturn


def _absent(*args: Any, **kwargs: Any) -> NoReturn:
    """RuntimeError: marks for NVIDIA's profilers are not built in."""
    raise RuntimeError("NVTX functions not installed. Are you sure you have a CUDA build?")


range_push = range_pop = range_start = range_end = mark = range = _absent
