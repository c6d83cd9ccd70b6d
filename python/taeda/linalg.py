"""Linear algebra: decompositions, norms, solvers. The functions come from the operator table."""

from taeda import _C, _near_names
from taeda._C import _LinAlgError as LinAlgError

globals().update(_C._by_owner.get("linalg", {}))
matmul = _C._by_owner["torch"]["matmul"]
__all__ = ["LinAlgError", "matmul", *sorted(_C._by_owner.get("linalg", {}))]
__getattr__ = _near_names.of_module(__name__)
