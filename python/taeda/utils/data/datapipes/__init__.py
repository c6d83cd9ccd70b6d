"""Pipes of data: iterable data sets that are put one behind the other."""

from taeda import _missing

from . import datapipe, iter

__all__ = ["datapipe", "iter"]

__getattr__, __dir__ = _missing.attributes(__name__)
