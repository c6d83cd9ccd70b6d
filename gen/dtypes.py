"""The dtypes that expressions name, read from include/taeda/dtype.h."""

from __future__ import annotations

import re
from pathlib import Path

HEADER = Path(__file__).resolve().parent.parent / "include" / "taeda" / "dtype.h"
_ROW = re.compile(r'^  X\((k\w+),\s+[\w:<>]+,\s+"(\w+)",', re.M)
# float32 -> kFloat32
ENUMERATORS = {name: enumerator for enumerator, name in _ROW.findall(HEADER.read_text())}
