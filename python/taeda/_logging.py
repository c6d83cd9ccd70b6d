"""The loggers that PyTorch's compilers write to: Python's, and silent, as nothing compiles."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["set_logs"]


def set_logs(*, all: int | None = None, modules: Any = None, **parts: int | bool | None) -> None:
    """Sets the levels of the loggers ``torch.PART``; those not named go back to their parent's.

    A bool switches a report of the compilers, such as `recompiles`, of which there are none.

    >>> import logging
    >>> set_logs(dynamo=logging.INFO)
    >>> logging.getLogger("torch._dynamo").level == logging.INFO
    True
    """
    levels = {"torch": all, **{f"torch.{_module(name)}": level for name, level in parts.items()}}
    levels.update(modules or {})
    for level in levels.values():
        if level is not None and not isinstance(level, int):
            raise ValueError(f"Unrecognized log level {level}: a level of logging is an integer")
    for name in [*_set, "torch"]:
        logging.getLogger(name).setLevel(logging.NOTSET)
    _set.clear()
    for name, level in levels.items():
        if level is not None and not isinstance(level, bool):
            logging.getLogger(name).setLevel(level)
            _set.append(name)


_set: list[str] = []


def _module(name: str) -> str:
    """The module whose logger PyTorch calls `name`."""
    private = {"dynamo", "inductor", "functorch", "dtensor"}
    return f"_{name}" if name in private else name
