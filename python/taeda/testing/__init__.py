"""Comparison of results and making of inputs, for tests."""

from taeda import _missing

from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

__getattr__, __dir__ = _missing.attributes(__name__)
