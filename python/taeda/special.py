"""Special functions, as the operator table names them here."""

from taeda import _C

globals().update(_C._by_owner["special"])
__all__ = sorted(_C._by_owner["special"])
