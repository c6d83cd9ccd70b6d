"""Event files: records of TensorFlow's format, each with checksums (CRC32C) around its bytes."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from itertools import count
from typing import IO, Any

from ._proto import Event

_numbers = count()


def _make_table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return table


_TABLE = _make_table()


def crc32c(data: bytes) -> int:
    """Castagnoli's checksum, of polynomial 0x1EDC6F41."""
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _masked_crc(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", (crc >> 15 | crc << 17) + 0xA282EAD8 & 0xFFFFFFFF)


class RecordWriter:
    """Writes records to an open file."""

    def __init__(self, writer: IO[bytes]) -> None:
        self._writer = writer

    def write(self, data: bytes) -> None:
        length = struct.pack("<Q", len(data))
        self._writer.write(b"".join([length, _masked_crc(length), data, _masked_crc(data)]))

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class EventFileWriter:
    """A new event file in a folder.

    Events are kept until there are ``max_queue`` of them or ``flush_secs`` have passed when one is
    added.
    """

    def __init__(
        self, logdir: str, max_queue_size: int = 10, flush_secs: float = 120, suffix: str = ""
    ) -> None:
        self._logdir = logdir
        self._limits = (max_queue_size, flush_secs)
        os.makedirs(logdir, exist_ok=True)
        place = f"{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}"
        name = f"events.out.tfevents.{place}{suffix}"
        self._records = RecordWriter(open(os.path.join(logdir, name), "wb"))
        self._waiting = 0
        self._flushed = time.monotonic()
        self._lock = threading.Lock()
        self.add_event(Event(wall_time=time.time(), file_version="brain.Event:2"))
        self.flush()

    def get_logdir(self) -> str:
        return self._logdir

    def add_event(self, event: Any) -> None:
        with self._lock:
            self._records.write(event.SerializeToString())
            self._waiting += 1
            queue, seconds = self._limits
            if self._waiting >= queue or time.monotonic() - self._flushed > seconds:
                self._flush()

    def _flush(self) -> None:
        self._records.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def flush(self) -> None:
        with self._lock:
            self._flush()

    def close(self) -> None:
        with self._lock:
            self._records.close()


def open_event_file(logdir: str, max_queue: int, flush_secs: float, suffix: str) -> Any:
    """The writer of the ``tensorboard`` package where it is installed, else that of this file."""
    try:
        from tensorboard.compat.proto.event_pb2 import Event as TheirEvent
        from tensorboard.summary.writer.event_file_writer import EventFileWriter as TheirWriter
    except ImportError:
        return EventFileWriter(logdir, max_queue, flush_secs, suffix)

    class Writer(TheirWriter):
        def add_event(self, event: Any) -> None:
            super().add_event(TheirEvent.FromString(event.SerializeToString()))

    return Writer(logdir, max_queue, flush_secs, suffix)
