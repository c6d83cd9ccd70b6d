"""Reductions and normalizations of the elements that a mask lets count.

All take ``mask=``, a tensor that is broadcast to the input (IndexError where it has more
dimensions), and ``dtype=``, the result's; ``dim`` is a number or several, None and () all. The
input may be a MaskedTensor, whose own mask counts.
"""

from taeda import _C, _near_names

globals().update(_C._by_owner["masked"])
__all__ = sorted(_C._by_owner["masked"])
__getattr__ = _near_names.of_module(__name__)
