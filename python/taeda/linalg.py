"""Linear algebra: decompositions, norms, solvers. The functions come from the operator table."""

from taeda import _C

globals().update(_C._functions.get("linalg", {}))
__all__ = sorted(_C._functions.get("linalg", {}))
