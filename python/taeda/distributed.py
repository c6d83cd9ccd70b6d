"""Distributed training: not part of this build, as ``is_available()`` says."""

from __future__ import annotations


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False
