"""Pipes of data: iterable data sets that are put one behind the other."""

from . import datapipe, iter

__all__ = ["datapipe", "iter"]
