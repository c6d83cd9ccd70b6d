"""Writes zip files as checkpoints have them: nothing compressed, contents aligned to 64 bytes."""

from __future__ import annotations

import struct
import zlib
from typing import Any

__all__ = ["ZipWriter"]

_ALIGNMENT = 64
_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_END64 = struct.Struct("<4sQHHIIQQQQ")
_LOCATOR64 = struct.Struct("<4sIQI")
_ZIP64 = struct.Struct("<HHQQ")
_DESCRIPTOR = struct.Struct("<4sIII")
_DESCRIPTOR64 = struct.Struct("<4sIQQ")
_DATE = (1 << 5) | 1  # 1980-01-01: files with the same content are the same
_PADDING_ID = 0x4246  # "FB": an extra field that holds padding
_MAX32 = 0xFFFFFFFF
_FLAGS = 0x808  # names in UTF-8; checksum and sizes behind the content
_CHUNK_BYTES = 1 << 20
TO_BOOL = bytes([0]) + bytes([1]) * 255


def _version(zip64: bool) -> int:
    """What a reader must understand."""
    return 45 if zip64 else 20


class ZipWriter:
    """A zip file being written to ``file``, all entries in one folder.

    ``file`` needs ``write`` alone, which takes all it is given. Checksums and sizes stand behind
    the contents, as PyTorch has them.
    """

    def __init__(self, file: Any, folder: str) -> None:
        self.file = file
        self.folder = folder
        self.position = 0
        self.directory: list[bytes] = []
        self._waiting: list[bytes] = []  # small parts, to be written together
        self._waiting_bytes = 0

    def _write(self, data: bytes) -> None:
        self.position += len(data)
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        if self._waiting_bytes >= _CHUNK_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._waiting:
            self.file.write(b"".join(self._waiting))
        self._waiting, self._waiting_bytes = [], 0

    def write(self, name: str, content: bytes) -> None:
        """Adds an entry."""
        header = self._begin(name, len(content))
        self._write(content)
        self._end(name, header, len(content), zlib.crc32(content))

    def write_storage(self, name: str, storage: Any, nbytes: int, is_bool: bool) -> None:
        """Adds an entry with the bytes of a storage, which others may change meanwhile.

        So the checksum is that of a copy, and the copy is what is written. Bytes of bools become 0
        or 1, which is what a reader may count on.
        """
        header, crc = self._begin(name, nbytes), 0
        view = memoryview(storage).cast("B") if nbytes else memoryview(b"")
        if len(view) != nbytes:
            raise RuntimeError("save: a storage changed its size while it was saved")
        for begin in range(0, nbytes, _CHUNK_BYTES):
            chunk = bytes(view[begin : begin + _CHUNK_BYTES])
            if is_bool:
                chunk = chunk.translate(TO_BOOL)
            crc = zlib.crc32(chunk, crc)
            self._write(chunk)
        self._end(name, header, nbytes, crc)

    def _begin(self, name: str, size: int) -> int:
        """Writes an entry's header and returns where it is."""
        path, header = f"{self.folder}/{name}".encode(), self.position
        begin = header + _LOCAL.size + len(path) + 4
        large = size >= _MAX32
        # A field with 64-bit sizes tells readers that those behind the content have 64 bits.
        sizes = _ZIP64.pack(1, 16, 0, 0) if large else b""
        padding = -(begin + len(sizes)) % _ALIGNMENT
        extra = sizes + struct.pack("<HH", _PADDING_ID, padding) + bytes(padding)
        size32 = _MAX32 if large else 0
        fields = (_version(large), _FLAGS, 0, 0, _DATE, 0, size32, size32, len(path), len(extra))
        self._write(_LOCAL.pack(b"PK\x03\x04", *fields) + path + extra)
        return header

    def _end(self, name: str, header: int, size: int, crc: int) -> None:
        """Writes what stands behind an entry's content, and notes it for the directory."""
        large = size >= _MAX32
        descriptor = _DESCRIPTOR64 if large else _DESCRIPTOR
        self._write(descriptor.pack(b"PK\x07\x08", crc, size, size))
        size32, header32, sizes = size, header, b""
        if large or header >= _MAX32:
            header32 = _MAX32
            size32 = _MAX32 if large else size
            values = (size, size, header) if large else (header,)
            sizes = struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values)
        path = f"{self.folder}/{name}".encode()
        version = _version(bool(sizes))
        fields = (version, version, _FLAGS, 0, 0, _DATE, crc, size32, size32, len(path), len(sizes))
        self.directory.append(
            _CENTRAL.pack(b"PK\x01\x02", *fields, 0, 0, 0, 0, header32) + path + sizes
        )

    def close(self) -> None:
        """Writes the directory and what else is waiting."""
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
        self._flush()
