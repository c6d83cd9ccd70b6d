"""Functions whose result's elements depend on the arguments' elements at the same index alone.

Tensors of several parts (`taeda.masked`, `taeda.nested`) put these through to their data. Operators
say it themselves (`OpOverload.tags`); this is for functions by their names, and for copies.
"""

from __future__ import annotations

from taeda import _C

# Copies and constants of a tensor's sizes.
COPIES = frozenset("clone detach copy _to_copy ones_like zeros_like full_like fill _cast".split())
ELEMENTWISE = COPIES | frozenset(_C._pointwise_functions().split())
