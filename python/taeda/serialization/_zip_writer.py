"""Writes zip files as checkpoints have them: nothing compressed, contents aligned to 64 bytes."""

from __future__ import annotations

import struct
import zlib
from typing import IO, Any

__all__ = ["ZipWriter"]

_ALIGNMENT = 64
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR64 = struct.Struct("<4sIQI")
_ZIP64 = struct.Struct("<HHQQ")
_DATE = (1 << 5) | 1  # 1980-01-01: files with the same content are the same
_PADDING_ID = 0x4246  # "FB": an extra field that holds padding
_MAX32 = 0xFFFFFFFF


class ZipWriter:
    """A zip file being written from the current position of ``file``, all entries in one folder.

    The positions in the archive are counted from there; ``file`` need not be able to seek.
    """

    def __init__(self, file: IO[bytes], folder: str) -> None:
        self.file = file
        self.folder = folder
        self.position = 0
        self.directory: list[bytes] = []

    def _write(self, data: Any) -> None:
        self.file.write(data)
        self.position += len(data)

    def write(self, name: str, content: Any) -> None:
        """Adds an entry with the bytes of ``content`` (anything with the buffer protocol)."""
        view = memoryview(content).cast("B") if len(content) else memoryview(b"")
        path = f"{self.folder}/{name}".encode()
        size, crc, header = len(view), zlib.crc32(view), self.position
        # Sizes that need 64 bits stand in an extra field.
        large = size >= _MAX32
        sizes = _ZIP64.pack(1, 16, size, size) if large else b""
        size32, version = (_MAX32, 45) if large else (size, 20)
        begin = header + _LOCAL.size + len(path) + len(sizes) + 4
        padding = -begin % _ALIGNMENT
        extra = sizes + struct.pack("<HH", _PADDING_ID, padding) + bytes(padding)
        fields = (version, 0x800, 0, 0, _DATE, crc, size32, size32, len(path))
        self._write(_LOCAL.pack(b"PK\x03\x04", *fields, len(extra)) + path + extra)
        self._write(view)
        offset32 = header
        if large or header >= _MAX32:
            offset32 = _MAX32
            values = (size, size, header) if large else (header,)
            sizes = struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values)
            version = 45
        central = (b"PK\x01\x02", version, version, *fields[1:], len(sizes), 0, 0, 0, 0, offset32)
        self.directory.append(_CENTRAL.pack(*central) + path + sizes)

    def close(self) -> None:
        """Writes the directory."""
        start, count = self.position, len(self.directory)
        for entry in self.directory:
            self._write(entry)
        size = self.position - start
        if count >= 0xFFFF or start >= _MAX32 or size >= _MAX32:
            end = self.position
            fields = (44, 45, 45, 0, 0, count, count, size, start)
            self._write(_END64.pack(b"PK\x06\x06", *fields))
            self._write(_LOCATOR64.pack(b"PK\x06\x07", 0, end, 1))
            count, size, start = min(count, 0xFFFF), min(size, _MAX32), min(start, _MAX32)
        self._write(_END.pack(b"PK\x05\x06", 0, 0, count, count, size, start, 0))
