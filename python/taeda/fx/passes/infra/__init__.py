"""What runs passes over graphs."""

from taeda import _missing

__getattr__, __dir__ = _missing.attributes(__name__)
