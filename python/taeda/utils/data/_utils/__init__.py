"""The inside of the DataLoader, at the addresses where PyTorch has it."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from . import collate, worker

__all__ = ["collate", "worker"]

IS_WINDOWS = sys.platform == "win32"
MP_STATUS_CHECK_INTERVAL = 5.0  # seconds between looks at other processes
HANG_WARNING_INTERVAL = 10.0  # seconds with one sample after which a worker's stack is shown
HAS_NUMPY = True
python_exit_status = False


def __getattr__(name: str) -> Any:
    if name in ("fetch", "pin_memory"):
        return importlib.import_module(f"{__name__}.{name}")
    if name == "ExceptionWrapper":
        from taeda._utils import ExceptionWrapper

        return ExceptionWrapper
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
