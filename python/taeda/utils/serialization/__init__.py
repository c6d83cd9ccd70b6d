"""Options of ``torch.save`` and ``torch.load``: see ``config``."""

from . import config

__all__ = ["config"]
