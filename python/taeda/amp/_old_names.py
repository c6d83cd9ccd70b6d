"""The warning of mixed precision's names by device."""

from __future__ import annotations

import warnings


def warn_old_name(old: str, new: str) -> None:
    """Tells the caller's caller that torch.amp has `new` for `old`."""
    warnings.warn(
        f"torch.{old}(...) is deprecated: use torch.amp.{new}", FutureWarning, stacklevel=3
    )
