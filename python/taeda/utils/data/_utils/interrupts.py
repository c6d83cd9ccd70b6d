"""Ctrl-C while a destructor runs, which would swallow its exception."""

from __future__ import annotations

import signal
import threading
from typing import Any

from taeda import _C

__all__ = ["InterruptsLater"]


class InterruptsLater:
    """Keeps Ctrl-C, whose exception a destructor would swallow, until that has returned."""

    def __enter__(self) -> None:
        self.came: Any = None
        self._handler: Any = None
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._handler = signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: Any) -> None:
        self.came = _C._interrupt_when_dropped()  # type: ignore[attr-defined]

    def __exit__(self, *exc: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
