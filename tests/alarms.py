"""Ends what would wait for ever."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


def _interrupt(*_: object) -> None:
    raise InterruptedError


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raises InterruptedError in the main thread after so long, unless the block ended before."""
    old = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
