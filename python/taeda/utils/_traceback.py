"""Tracebacks as text."""

from __future__ import annotations

import contextlib
import sys
import traceback
from collections.abc import Iterator
from typing import Any

__all__ = [
    "CapturedTraceback",
    "format_frame",
    "format_traceback_short",
    "report_compile_source_on_error",
]


def format_frame(frame: Any, *, base: str | None = None, line: bool = False) -> str:
    """ "file.py:12 in function", with the line of the program if asked."""
    extra = f"{frame.line}  # " if line else ""
    name = frame.filename.removeprefix(base or "").lstrip("/" if base else "")
    return f"{extra}{name}:{frame.lineno} in {frame.name}"


def format_traceback_short(tb: Any) -> str:
    """The innermost frame of a traceback."""
    return format_frame(traceback.extract_tb(tb)[-1])


class CapturedTraceback:
    """Where the program was when this was made."""

    def __init__(self, frames: Any, skip: int = 0) -> None:
        self._frames, self.skip = frames, skip

    @staticmethod
    def extract(*, script: bool = False, cpp: bool = False, skip: int = 0) -> CapturedTraceback:
        """The callers, without the innermost ``skip``."""
        frames = list(traceback.walk_stack(sys._getframe(1)))[skip:][::-1]
        return CapturedTraceback(traceback.StackSummary.extract(iter(frames)))

    def summary(self) -> Any:
        return self._frames

    def format(self) -> list[str]:
        """The lines of a traceback."""
        return traceback.format_list(self._frames)

    def __str__(self) -> str:
        return "".join(self.format())


@contextlib.contextmanager
def report_compile_source_on_error() -> Iterator[None]:
    """Errors are raised as they are: nothing is compiled from text here."""
    yield
