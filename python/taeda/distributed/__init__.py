"""Distributed training: not part of this build, as ``is_available()`` says."""

from __future__ import annotations

from taeda import _missing


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def is_torchelastic_launched() -> bool:
    return False


__getattr__, __dir__ = _missing.attributes(__name__)
