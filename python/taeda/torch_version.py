"""The class of ``torch.__version__``."""

from __future__ import annotations

from taeda.version import TorchVersion, __version__

internal_version = str(__version__)
__all__ = ["TorchVersion", "__version__"]
