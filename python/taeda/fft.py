"""Discrete Fourier transforms. The functions come from the operator table."""

from taeda import _C, _near_names

globals().update(_C._by_owner.get("fft", {}))
__all__ = sorted(_C._by_owner.get("fft", {}))
__getattr__ = _near_names.of_module(__name__)
