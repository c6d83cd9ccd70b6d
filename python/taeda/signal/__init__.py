"""Signal processing: window functions (`torch.signal.windows`)."""

from taeda.signal import windows

__all__ = ["windows"]
