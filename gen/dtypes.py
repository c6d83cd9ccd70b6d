"""The table of dtypes, as the generator needs it: read from include/taeda/dtype.h."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

HEADER = Path(__file__).resolve().parent.parent / "include" / "taeda" / "dtype.h"
_ROW = re.compile(
    r'^  X\((\w+),\s+([\w:<>]+),\s+"(\w+)",\s+"\w*",\s+"\w+",\s+k(\w+),\s+([\w:<>]+),', re.M
)


class DType(NamedTuple):
    enumerator: str  # kFloat32
    cpp: str  # float
    name: str  # float32
    kind: str  # Bool, Integer, Floating or Complex
    compute: str  # the C++ type that pointwise operators calculate in
    storage: bool  # no kernel is compiled for it


_TEXT = HEADER.read_text()
_STORAGE = _TEXT.index("#define TD_STORAGE_DTYPES(X)")
DTYPES = [DType._make((*row.groups(), row.start() > _STORAGE)) for row in _ROW.finditer(_TEXT)]
# dtypes that loops are compiled for: name -> C++ type; None where they calculate in another.
LOOP_TYPES = {
    d.name: ("bool" if d.kind == "Bool" else d.cpp) if d.cpp == d.compute else None
    for d in DTYPES
    if not d.storage
}


def loop_types(*kinds: str) -> list[str]:
    """Names of the dtypes of some kinds that loops are compiled for."""
    return [d.name for d in DTYPES if d.kind in kinds and LOOP_TYPES.get(d.name)]
