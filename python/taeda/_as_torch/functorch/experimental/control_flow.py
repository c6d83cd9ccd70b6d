"""Control flow as functions."""

from __future__ import annotations

from torch._higher_order_ops import cond as cond
from torch._higher_order_ops import map as map
