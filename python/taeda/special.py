"""Special functions, as the operator table names them here."""

from taeda import _C, _near_names

globals().update(_C._by_owner["special"])
__all__ = sorted(_C._by_owner["special"])
__getattr__ = _near_names.of_module(__name__)
