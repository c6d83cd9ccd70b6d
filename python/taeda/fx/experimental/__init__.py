"""Tracing of operators, and names of PyTorch's symbolic sizes."""

from taeda import _missing

__getattr__, __dir__ = _missing.attributes(__name__)
