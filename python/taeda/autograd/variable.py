"""The old module of ``Variable``."""

from taeda.autograd import Variable

__all__ = ["Variable"]
