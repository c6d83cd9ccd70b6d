"""Mixed precision: autocast chooses each operator's precision, GradScaler keeps gradients in range.

>>> import taeda as torch
>>> x = torch.ones(2, 2)
>>> with torch.autocast("cpu"):
...     print((x @ x).dtype)
torch.bfloat16
"""

from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
