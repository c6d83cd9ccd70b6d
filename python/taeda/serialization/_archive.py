"""Archives by their records: ``torch.PyTorchFileReader`` and ``torch.PyTorchFileWriter``."""

from __future__ import annotations

import hashlib
import os
from typing import Any

import taeda

from ._safe_write import ObjectWriter
from ._zip_reader import ZipReader
from ._zip_writer import ZipWriter

__all__ = ["PyTorchFileReader", "PyTorchFileWriter"]


class PyTorchFileReader:
    """The records of a file that ``torch.save`` or PyTorchFileWriter has written.

    Made of a path or an open file; RuntimeError where it is no such archive.
    """

    def __init__(self, name_or_buffer: Any) -> None:
        own = isinstance(name_or_buffer, (str, os.PathLike))
        self._file = open(name_or_buffer, "rb") if own else name_or_buffer
        self._zip = ZipReader(self._file, 3 * self._file.seek(0, 2))
        self._folder = next(iter(self._zip.entries), "").partition("/")[0]

    def archive_name(self) -> str:
        """The folder that all records are in."""
        return self._folder

    def _path(self, name: str) -> str:
        path = f"{self._folder}/{name}"
        if path not in self._zip.entries:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return path

    def get_all_records(self) -> list[str]:
        """The records' names."""
        return [name.removeprefix(f"{self._folder}/") for name in self._zip.entries]

    def has_record(self, name: str) -> bool:
        return f"{self._folder}/{name}" in self._zip.entries

    def get_record(self, name: str) -> bytes:
        """The content, its checksum verified."""
        return self._zip.read(self._path(name))

    def get_record_size(self, name: str) -> int:
        return self._zip.entries[self._path(name)].size

    def get_record_offset(self, name: str) -> int:
        """Where the content begins in the file."""
        return self._zip.content_offset(self._path(name))

    def get_storage_from_record(self, name: str, numel: int, dtype: Any) -> Any:
        """A tensor of one dimension on the content; ``dtype`` may be UntypedStorage, for bytes."""
        dtype = dtype if isinstance(dtype, taeda.dtype) else taeda.uint8
        data = bytearray(self.get_record(name))
        return taeda.frombuffer(data, dtype=dtype, count=numel) if numel else taeda.empty(0)

    def version(self) -> int:
        """The format's."""
        name = "version" if self.has_record("version") else ".data/version"
        return int(self.get_record(name))

    def serialization_id(self) -> str:
        """The digits that tell this archive from others; "" where it has none."""
        name = ".data/serialization_id"
        return self.get_record(name).decode() if self.has_record(name) else ""


class PyTorchFileWriter:
    """Writes an archive, record by record, to a path or an object with ``write``.

    ``write_end_of_file`` completes it.
    """

    def __init__(
        self, name_or_buffer: Any, compute_crc32: bool = True, storage_alignment: int = 64
    ) -> None:
        if storage_alignment != 64:
            raise NotImplementedError("PyTorchFileWriter: contents are aligned to 64 bytes")
        own = isinstance(name_or_buffer, (str, os.PathLike))
        stem = os.path.splitext(os.path.basename(name_or_buffer))[0] if own else "archive"
        self._file = open(name_or_buffer, "wb") if own else None
        self._zip = ZipWriter(self._file or ObjectWriter(name_or_buffer), stem)
        self._written: list[str] = []
        self._version = 3
        self._sha = hashlib.sha256()

    def archive_name(self) -> str:
        """The folder that all records are in."""
        return self._zip.folder

    def set_min_version(self, version: int) -> None:
        """Raises the format's version to this one."""
        self._version = max(self._version, version)

    def get_all_written_records(self) -> set[str]:
        return set(self._written)

    def write_record(self, name: str, data: Any, size: int | None = None) -> None:
        """Adds ``size`` bytes (all by default) of bytes or of a storage."""
        if name in self._written:
            raise RuntimeError(f"PytorchStreamWriter: record {name} was written already")
        if isinstance(data, str):
            data = data.encode()
        content = bytes(memoryview(data).cast("B")[:size])
        self._sha.update(name.encode() + content)
        self._zip.write(name, content)
        self._written.append(name)

    def serialization_id(self) -> str:
        """Digits made of the names and contents written so far."""
        return str(int.from_bytes(self._sha.digest()[:16], "little")).zfill(40)

    def write_end_of_file(self) -> None:
        """Adds the format's version and the directory; nothing can follow."""
        if "version" not in self._written:
            self.write_record("version", f"{self._version}\n".encode())
        self.write_record(".data/serialization_id", self.serialization_id().encode())
        self._zip.close()
        if self._file is not None:
            self._file.close()
