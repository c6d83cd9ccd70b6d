"""Questions that libraries ask the compiler."""

from __future__ import annotations

import functools
import warnings
from collections import Counter, defaultdict
from typing import Any

from taeda import _missing

counters: defaultdict[str, Counter] = defaultdict(Counter)
compilation_time_metrics: dict[str, list[float]] = {}


def is_compile_supported(device_type: str) -> bool:
    """Whether programs can be compiled for a kind of device; they run eagerly."""
    return False


def maybe_enable_compiled_autograd(should_enable: bool, *args: Any, **kwargs: Any) -> Any:
    """A block without effect."""
    import contextlib

    return contextlib.nullcontext()


def is_parameter_freezing() -> bool:
    """Whether parameters are made constants: never."""
    return False


@functools.cache
def warn_once(msg: str, stacklevel: int = 1) -> None:
    """Warns of what no call has warned of before."""
    warnings.warn(msg, stacklevel=stacklevel + 1)


__getattr__, __dir__ = _missing.attributes(__name__)
