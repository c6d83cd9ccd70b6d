"""Linear algebra: decompositions, norms, solvers. The functions come from the operator table."""

from taeda import _C
from taeda._C import _LinAlgError as LinAlgError

globals().update(_C._functions.get("linalg", {}))
__all__ = ["LinAlgError", *sorted(_C._functions.get("linalg", {}))]
