"""functorch's rearrange: raises when called."""

from __future__ import annotations

from taeda import _missing

rearrange = _missing.function(
    "functorch.einops.rearrange", "it needs first-class dimensions; use einops.rearrange"
)
