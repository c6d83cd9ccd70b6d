"""The old module of ``Variable``."""

from taeda import _missing
from taeda.autograd import Variable

__all__ = ["Variable"]

__getattr__, __dir__ = _missing.attributes(__name__)
