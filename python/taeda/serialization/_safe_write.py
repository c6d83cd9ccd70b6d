"""Where ``save`` writes: to a path, whose file is replaced when all is written, or to an object."""

from __future__ import annotations

import io
from typing import Any

from taeda import _C

__all__ = ["ObjectWriter", "write_safely"]


def write_safely(path: Any, write: Any) -> None:
    """Calls ``write(file)`` on a new file and puts it in the place of ``path``, synced.

    The path holds the old file or the new one, whatever happens (``src/io/file_writer.h``).
    """
    file = _C._FileWriter(path)
    try:
        write(file)
        file.commit()
    finally:
        file.close()


class ObjectWriter:
    """Writes all it is given to an object with ``write``, which may take less at a time."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def write(self, data: bytes) -> None:
        while data:
            count = self.file.write(data)
            if count is None and isinstance(self.file, io.RawIOBase):
                raise BlockingIOError("save: the file does not take more data now")
            if not isinstance(count, int):
                return  # a write() that does not say took all
            if not 0 < count <= len(data):
                raise OSError(f"save: write() says that it took {count} of {len(data)} bytes")
            data = data[count:]
