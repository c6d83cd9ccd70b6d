"""Finds what it is in a batch that cannot be pickled."""

from __future__ import annotations

import collections.abc
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["describe"]

_SECONDS = 1.0  # that the search may take
_DEEPEST = 32


def describe(batch: Any, index: Any, dumps: Callable[[Any], Any]) -> str:
    """What to say of it: "cannot be pickled, ...: batch[3].callback (index 7) is a function".

    Args:
        batch: what :func:`dumps` refuses.
        index: what a list of samples was asked for: a list of that length holds them; or None.
        dumps: pickles; its exceptions tell what cannot be.
    """
    if not _fails(batch, dumps):
        return "cannot be sent, since the dataset's state_dict() cannot be pickled"
    try:
        path, sample, part = _find(batch, index, dumps)
    except Exception:  # of the repr of an index, say
        path, sample, part = "batch", "", batch
    kind = type(part)
    name = kind.__qualname__ if kind.__module__ == "builtins" else (
        f"{kind.__module__}.{kind.__qualname__}"
    )  # fmt: skip
    what = f"{path}{sample} is a {name}"
    return f"cannot be pickled, which is how it travels to the trainer: {what}"


def _find(batch: Any, index: Any, dumps: Callable[[Any], Any]) -> tuple[str, str, Any]:
    """(path of the innermost part that cannot be pickled, " (index 7)" of its sample, the part)"""
    path, sample, part = "batch", "", batch
    end = time.monotonic() + _SECONDS
    indices = index if isinstance(index, (list, tuple)) else ()
    for _ in range(_DEEPEST):
        found = next(
            (child for child in _until(end, _children(part)) if _fails(child[2], dumps)), None
        )
        if found is None:
            break
        step, at, child = found
        if not sample and at is not None and _len(part) == len(indices) > 0:
            sample = f" (index {indices[at]!r})"
        path, part = path + step, child
    return path, sample, part


def _until(end: float, children: Iterator[tuple]) -> Iterator[tuple]:
    with contextlib.suppress(Exception):  # of what the objects' own methods raise
        yield from itertools.takewhile(lambda child: time.monotonic() < end, children)


def _fails(x: Any, dumps: Callable[[Any], Any]) -> bool:
    try:
        dumps(x)
    except Exception:
        return True
    return False


def _len(x: Any) -> int:
    return len(x) if isinstance(x, (list, tuple)) and not hasattr(x, "_fields") else -1


def _children(x: Any) -> Iterator[tuple[str, int | None, Any]]:
    """(how it is written, its index in a list, the item) of what a container or object consists."""
    if isinstance(x, collections.abc.Mapping):
        for key in x:
            yield f"[{key!r}]", None, x[key]
    elif isinstance(x, (list, tuple)):
        names = getattr(x, "_fields", None)
        for i, item in enumerate(x):
            yield (f".{names[i]}" if names else f"[{i}]"), i, item
    elif isinstance(x, (set, frozenset)):
        for item in x:
            yield "{...}", None, item
    if not isinstance(x, type):
        for name, value in list(getattr(x, "__dict__", {}).items()):
            yield f".{name}", None, value
