"""Writes docs/errors.md: `make docs-errors`. Needs PyTorch for the other column."""

import importlib
import sys
from pathlib import Path

import taeda

from .page import page

PATH = Path(__file__).resolve().parents[2] / "docs" / "errors.md"

try:
    torch = importlib.import_module("torch")
except ImportError:
    sys.exit("PyTorch is not installed here: docs/errors.md shows what it says, too")
PATH.write_text(page(taeda, torch))
print(f"wrote {PATH}")
