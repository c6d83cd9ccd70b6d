"""Reads the zip files that checkpoints are, trusting nothing in them.

Entry names are unique, entries lie in the file without overlap, and what is read has the length and
the checksum that the directory says. The directory is the only list of entries that counts.
"""

from __future__ import annotations

import struct
import zlib
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any, NamedTuple

__all__ = ["ZipReader"]

_LOCAL = struct.Struct("<4sHHHHHIIIHH")
_CENTRAL = struct.Struct("<4sHHHHHHIIIHHHHHII")
_END = struct.Struct("<4sHHHHIIH")
_LOCATOR64 = struct.Struct("<4sIQI")
_END64 = struct.Struct("<4sQHHIIQQQQ")
STORED, _DEFLATED = 0, 8


def _fail(text: str) -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader failed reading zip archive: {text}")


class Entry(NamedTuple):
    header: int  # offset of the local header
    packed: int  # bytes in the file
    size: int  # bytes of the content
    crc: int
    method: int


class ZipReader:
    """The entries of a zip file by name.

    ``budget`` bounds the total size of compressed entries once unpacked. As a context, it verifies
    the checksums of what ``read_into`` reads on a thread of its own, while more is read, and raises
    at the end when one is wrong. That is for memory that nobody changes meanwhile; without
    ``background``, each is verified as soon as it is read.
    """

    def __init__(self, file: IO[bytes], budget: int, background: bool = False) -> None:
        self.file = file
        self.budget = budget
        self.background = background
        file.seek(0, 2)
        self.length = file.tell()
        count, size, start = self._find_directory()
        self.entries = self._read_directory(count, size, start)
        self._check_overlap(start)
        self._to_verify: SimpleQueue = SimpleQueue()
        self._verifier: Thread | None = None
        self._damaged: str | None = None

    def __enter__(self) -> ZipReader:
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if self._verifier is None:
            return
        self._to_verify.put(None)
        self._verifier.join()
        self._verifier = None
        if self._damaged is not None and exc_info[0] is None:
            raise _fail(f"the checksum of {self._damaged!r} is wrong: the file is damaged")

    def _verify(self) -> None:
        while (item := self._to_verify.get()) is not None:
            name, target = item
            if self._damaged is None and zlib.crc32(target) != self.entries[name].crc:
                self._damaged = name

    def _at(self, offset: int, size: int) -> bytes:
        if offset < 0 or size < 0 or offset + size > self.length:
            raise _fail("an entry lies outside the file")
        self.file.seek(offset)
        data = self.file.read(size)
        if len(data) != size:
            raise _fail("the file is truncated")
        return data

    def _find_directory(self) -> tuple[int, int, int]:
        """(number of entries, size, offset) of the central directory."""
        tail_size = min(self.length, _END.size + 65535)
        tail = self._at(self.length - tail_size, tail_size)
        at = tail.rfind(b"PK\x05\x06")
        if at < 0 or at + _END.size > len(tail):
            raise _fail("failed finding central directory")
        _, disk, first_disk, _, count, size, start, _ = _END.unpack_from(tail, at)
        if disk != first_disk:
            raise _fail("archives in several parts are not supported")
        end = self.length - tail_size + at
        if count == 0xFFFF or size == 0xFFFFFFFF or start == 0xFFFFFFFF:
            count, size, start, end = self._find_directory64(end)
        if start + size > end:
            raise _fail("the central directory lies outside the file")
        return count, size, start

    def _find_directory64(self, end: int) -> tuple[int, int, int, int]:
        locator = self._at(end - _LOCATOR64.size, _LOCATOR64.size)
        signature, _, offset, _ = _LOCATOR64.unpack(locator)
        if signature != b"PK\x06\x07":
            raise _fail("failed finding the zip64 directory")
        fields = _END64.unpack(self._at(offset, _END64.size))
        if fields[0] != b"PK\x06\x06":
            raise _fail("failed finding the zip64 directory")
        return fields[7], fields[8], fields[9], offset

    def _read_directory(self, count: int, size: int, start: int) -> dict[str, Entry]:
        if count * _CENTRAL.size > size:
            raise _fail("the central directory is too small for its entries")
        data = self._at(start, size)
        entries: dict[str, Entry] = {}
        at = 0
        for _ in range(count):
            if at + _CENTRAL.size > size:
                raise _fail("the central directory is truncated")
            fields = _CENTRAL.unpack_from(data, at)
            if fields[0] != b"PK\x01\x02":
                raise _fail("the central directory is damaged")
            flags, method, crc, packed, unpacked = (fields[i] for i in (3, 4, 7, 8, 9))
            name_size, extra_size, comment_size, header = (fields[i] for i in (10, 11, 12, 16))
            at += _CENTRAL.size
            if at + name_size + extra_size + comment_size > size:
                raise _fail("the central directory is truncated")
            name = data[at : at + name_size].decode("utf-8", "replace")
            extra = data[at + name_size : at + name_size + extra_size]
            at += name_size + extra_size + comment_size
            unpacked, packed, header = _zip64(extra, unpacked, packed, header)
            if name in entries:
                raise _fail(f"the entry {name!r} is there twice")
            if flags & 1:
                raise _fail(f"the entry {name!r} is encrypted")
            if method not in (STORED, _DEFLATED):
                raise _fail(f"the entry {name!r} has the unknown compression method {method}")
            if method == STORED and packed != unpacked:
                raise _fail(f"the entry {name!r} has sizes that do not agree")
            entries[name] = Entry(header, packed, unpacked, crc, method)
        return entries

    def _check_overlap(self, directory: int) -> None:
        unpacked = sum(e.size for e in self.entries.values() if e.method == _DEFLATED)
        if unpacked > self.budget:
            raise _fail(
                f"compressed entries unpack to {unpacked} bytes, more than {self.budget} allowed"
            )
        end = 0
        for entry in sorted(self.entries.values()):
            if entry.header < end:
                raise _fail("entries overlap")
            end = entry.header + _LOCAL.size + entry.packed
        if end > directory:
            raise _fail("an entry overlaps the central directory")

    def content_offset(self, name: str) -> int:
        """Where the bytes of an entry begin."""
        entry = self.entries[name]
        fields = _LOCAL.unpack(self._at(entry.header, _LOCAL.size))
        if fields[0] != b"PK\x03\x04":
            raise _fail(f"the entry {name!r} has no header")
        offset = entry.header + _LOCAL.size + fields[9] + fields[10]
        if offset + entry.packed > self.length:
            raise _fail(f"the entry {name!r} lies outside the file")
        return offset

    def read(self, name: str) -> bytes:
        """The content of an entry, its checksum verified."""
        entry = self.entries.get(name)
        if entry is None:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        data = self._at(self.content_offset(name), entry.packed)
        if entry.method == _DEFLATED:
            data = self._inflate(name, data, entry.size)
        self.check(name, data)
        return data

    def check(self, name: str, data: bytes | memoryview) -> None:
        """RuntimeError unless the content of an entry has its checksum."""
        if zlib.crc32(data) != self.entries[name].crc:
            raise _fail(f"the checksum of {name!r} is wrong: the file is damaged")

    def read_into(self, name: str, target: memoryview) -> None:
        """The content of an uncompressed entry straight into memory of its size.

        Only inside the context, at whose end the memory is verified.
        """
        entry = self.entries[name]
        self.file.seek(self.content_offset(name))
        if self.file.readinto(target) != entry.size:  # type: ignore[attr-defined]
            raise _fail("the file is truncated")
        if self.background and self._verifier is None:
            self._start_verifier()
        if self._verifier is None:
            self.check(name, target)
        else:
            self._to_verify.put((name, target))

    def _start_verifier(self) -> None:
        verifier = Thread(target=self._verify, name="taeda.load checksums", daemon=True)
        try:
            verifier.start()
        except (RuntimeError, MemoryError):  # no more threads here: this one verifies
            self.background = False
        else:
            self._verifier = verifier

    @staticmethod
    def _inflate(name: str, data: bytes, size: int) -> bytes:
        unpacker = zlib.decompressobj(-15)
        try:
            result = unpacker.decompress(data, size + 1)
        except zlib.error as error:
            raise _fail(f"the entry {name!r} cannot be unpacked: {error}") from None
        if len(result) != size:
            raise _fail(f"the entry {name!r} unpacks to another size than it says")
        return result


def _zip64(extra: bytes, unpacked: int, packed: int, header: int) -> tuple[int, int, int]:
    """The sizes and offset that stand in the zip64 extra field where 32 bits are too few."""
    at = 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<HH", extra, at)
        at += 4
        if kind != 1:
            at += size
            continue
        values = iter(
            struct.unpack_from("<Q", extra, i)[0]
            for i in range(at, min(at + size, len(extra)) - 7, 8)
        )
        try:
            unpacked = next(values) if unpacked == 0xFFFFFFFF else unpacked
            packed = next(values) if packed == 0xFFFFFFFF else packed
            header = next(values) if header == 0xFFFFFFFF else header
        except StopIteration:
            raise _fail("a zip64 field is too short") from None
        break
    return unpacked, packed, header
