"""Checkpoints of programs that run in one process: `state_dict`."""

from __future__ import annotations

from taeda import _missing

__getattr__, __dir__ = _missing.attributes(__name__)
