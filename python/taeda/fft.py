"""Discrete Fourier transforms. The functions come from the operator table."""

from taeda import _C

globals().update(_C._by_owner.get("fft", {}))
__all__ = sorted(_C._by_owner.get("fft", {}))
