"""Pages of memory that the forked workers of a loader share although each has written to them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from taeda import _C

__all__ = ["inherited_pages", "prefers_memory"]

SWITCH = "TAEDA_LOADER_SHARE_PAGES"  # an environment variable; "0": off, "1": at any price


@contextlib.contextmanager
def inherited_pages(context: Any) -> Iterator[Any]:
    """What workers that are forked in this block share; None when they do not."""
    pages = None
    is_fork = getattr(context, "get_start_method", lambda: "")() == "fork"
    if is_fork and os.environ.get(SWITCH) != "0":
        pages = _C._SharedPages._create()  # type: ignore[attr-defined]
    if pages is None:
        yield None
        return
    pages.set_inherited(True)
    try:
        yield pages
    finally:
        pages.set_inherited(False)


def prefers_memory() -> bool:
    """Whether the program wants pages to be shared however long that takes."""
    return os.environ.get(SWITCH) == "1"
