"""The loggers that PyTorch's compilers write to: Python's, and silent, as nothing compiles."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import Any

__all__ = ["getArtifactLogger", "set_logs"]


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


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """The logger of one of a module's reports, such as "graph_breaks"; none is ever written to by
    what taeda runs.

    >>> torch._logging.getArtifactLogger("prog", "recompiles").name
    'prog.__recompiles'
    """
    return logging.getLogger(f"{module_qname}.__{artifact_name}")


def warning_once(logger_obj: logging.Logger, *args: Any, **kwargs: Any) -> None:
    """Logs a warning the first time that a logger is given these arguments."""
    key = (logger_obj.name, *map(str, args))
    if key not in _warned:
        _warned.add(key)
        logger_obj.warning(*args, **kwargs)


_warned: set[tuple] = set()


class LazyString:
    """Text that is made when it is shown.

    >>> str(torch._logging.LazyString("{}-{}".format, 1, 2))
    '1-2'
    """

    def __init__(self, func: Any, *args: Any, **kwargs: Any) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


def trace_structured(name: str, *args: Any, **kwargs: Any) -> None:
    """Nothing: compilers write structured logs, and none runs."""


def dtrace_structured(name: str, *args: Any, **kwargs: Any) -> None:
    """Nothing: compilers write structured logs, and none runs."""


def hide_warnings(filter_fn: Any) -> Any:
    """A block in which warnings do not show for which `filter_fn(message, category, filename,
    lineno, file, line)` is True."""
    return _hiding(filter_fn)


@contextlib.contextmanager
def _hiding(hides: Any) -> Iterator[None]:
    show = warnings.showwarning

    def chosen(*args: Any, **kwargs: Any) -> None:
        if not hides(*args, **kwargs):
            show(*args, **kwargs)

    warnings.showwarning = chosen
    try:
        yield
    finally:
        warnings.showwarning = show
