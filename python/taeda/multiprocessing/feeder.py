"""The thread that sends a queue's messages, so that ``put`` does not wait for a reader."""

from __future__ import annotations

import errno
from multiprocessing.util import info, is_exiting
from typing import Any

from .capacity import Capacity

__all__ = ["end", "feed", "join"]

END = object()  # in place of a message: there are no more


def feed(
    queue: Any,
    buffer: Any,
    notempty: Any,
    reader: Any,
    writer: Any,
    write_lock: Any,
    capacity: Capacity,
    ignore_broken_pipe: bool,
    on_error: Any,
) -> None:
    """Sends the messages in `buffer`, each with its claim, until the end of the queue."""
    while True:
        with notempty:
            while not buffer:
                notempty.wait()
            entry = buffer.popleft()
        if entry is END:
            reader.close()
            writer.close()
            return
        message, claim = entry
        del entry
        try:
            with write_lock:
                try:
                    writer.send_message(message, capacity.new_number(claim))
                finally:
                    capacity.sent(claim)
        except Exception as error:
            if ignore_broken_pipe and getattr(error, "errno", 0) == errno.EPIPE:
                return
            if is_exiting():
                info("error in queue thread: %s", error)
                return
            on_error(error, message)
        del message
        with notempty:
            owner = queue()
            if owner is not None:
                owner._unsent -= 1
            del owner


def join(thread: Any) -> None:
    living = thread()
    if living is not None:
        living.join()


def end(buffer: Any, notempty: Any) -> None:
    with notempty:
        buffer.append(END)
        notempty.notify()
