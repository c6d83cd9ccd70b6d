"""Values that another thread will give."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that is set once, for which any thread may wait.

    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(3)
    >>> doubled.wait()
    6
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def __class_getitem__(cls, item: Any) -> Any:
        return cls

    def done(self) -> bool:
        """Whether there is a value or an exception."""
        return self._done

    def wait(self) -> Any:
        """The value, once it is there; raises the exception that was set instead."""
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self) -> Any:
        """The value; RuntimeError before it is there."""
        if not self._done:
            raise RuntimeError("Future.value: the future is not completed; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._value

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a "
                    "Future can only be marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)

    def set_result(self, result: Any) -> None:
        """Gives the value to all who wait; RuntimeError the second time."""
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Has ``wait`` and ``value`` raise this."""
        if not isinstance(result, BaseException):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def add_done_callback(self, callback: Callable[[Future], Any]) -> None:
        """Calls ``callback(self)`` when it is completed, at once if it is."""
        with self._changed:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """The future of what ``callback(self)`` will return."""
        following = Future()

        def run(done: Future) -> None:
            try:
                following.set_result(callback(done))
            except BaseException as error:
                following.set_exception(error)

        self.add_done_callback(run)
        return following


def collect_all(futures: list[Future]) -> Future:
    """A future of the list, completed when all of them are."""
    collected, left, lock = Future(), len(futures), threading.Lock()

    def count(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            collected.set_result(futures)

    if not futures:
        collected.set_result(futures)
    for future in futures:
        future.add_done_callback(count)
    return collected


def wait_all(futures: list[Future]) -> list[Any]:
    """The values of all, once they are there."""
    return [future.wait() for future in collect_all(futures).wait()]
