"""There is no mps device."""

from __future__ import annotations


def is_available() -> bool:
    return False


def device_count() -> int:
    return 0


def empty_cache() -> None:
    """Nothing is cached."""


def manual_seed(seed: int) -> None:
    """Nothing to seed."""
