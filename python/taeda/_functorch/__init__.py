"""torch.func's transforms under the names of the modules that PyTorch keeps them in."""

from __future__ import annotations

from taeda import _missing

__getattr__, __dir__ = _missing.attributes(__name__)
