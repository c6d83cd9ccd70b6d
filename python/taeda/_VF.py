"""The operators by name, as torch's own Python functions call them: `_VF.gru_cell(...)`.

>>> torch._VF.tanh(torch.zeros(1))
tensor([0.])
"""

from __future__ import annotations

from typing import Any

from taeda import _C


def __getattr__(name: str) -> Any:
    return getattr(_C._VariableFunctions, name)
