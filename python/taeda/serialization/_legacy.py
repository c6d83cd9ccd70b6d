"""The format before zip files: pickles one after the other, then the storages.

magic number, protocol version, system info, the object, the list of storage keys; then for each key
the number of elements (8 bytes) and the elements.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Callable
from pickle import UnpicklingError
from pickletools import genops
from typing import Any, NamedTuple

import taeda
from taeda._portable import on_host

from ._names import check_storage_id, named_storage
from ._zip_writer import TO_BOOL

__all__ = ["MAGIC_NUMBER", "load_legacy", "write_legacy"]

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
_PROTOCOL_VERSION = 1001


class _Storage(NamedTuple):
    untyped: Any
    dtype: Any  # of the bytes in the file
    nbytes: int


class _Storages:
    """The storages that the pickle names, allocated as it is read and filled afterwards."""

    def __init__(self, limit: int, place: Callable[[Any, str], Any]) -> None:
        self.limit = limit
        self.place = place
        self.by_key: dict[str, _Storage] = {}

    def persistent_load(self, pid: Any) -> Any:
        kind, key, location, numel = check_storage_id(pid, (5, 6))
        if len(pid) == 6 and pid[5] is not None:
            raise NotImplementedError("load: views of storages, from before PyTorch 0.4")
        if key not in self.by_key:
            nbytes = numel * kind.dtype.itemsize
            if numel < 0 or nbytes > self.limit:
                raise UnpicklingError("load: a storage is larger than the file")
            self.limit -= nbytes
            untyped = self.place(taeda.UntypedStorage(bytes(nbytes)), location)
            self.by_key[key] = _Storage(untyped, kind.dtype, nbytes)
        return named_storage(self.by_key[key].untyped, kind)


def load_legacy(
    data: bytes,
    read_pickle: Callable[..., tuple[Any, int]],
    place: Callable[[Any, str], Any],
    verify: bool,
) -> Any:
    """The object in ``data``.

    ``read_pickle(position, persistent_load)`` reads one pickle; ``place(storage, location)`` gives
    the storage that is filled, unless it has no memory. ``verify`` asks for bools of 0 and 1.
    """
    storages = _Storages(len(data), place)
    magic, at = read_pickle(0, None)
    if magic != MAGIC_NUMBER:
        raise UnpicklingError("Invalid magic number; corrupt file?")
    version, at = read_pickle(at, None)
    if version != _PROTOCOL_VERSION:
        raise UnpicklingError("Invalid protocol version in a file of the old format")
    info, at = read_pickle(at, None)
    if isinstance(info, dict) and info.get("little_endian", True) is not True:
        raise NotImplementedError("load: big-endian files of the old format are not supported")
    result, at = read_pickle(at, storages.persistent_load)
    keys, at = read_pickle(at, None)
    if type(keys) is not list or any(type(key) is not str for key in keys):
        raise UnpicklingError("load: the list of storages is damaged")
    if len(keys) != len(set(keys)) or set(keys) != set(storages.by_key):
        raise UnpicklingError("load: the storages in the file are not those that it names")
    for key in keys:
        storage = storages.by_key[key]
        if at + 8 + storage.nbytes > len(data):
            raise RuntimeError("unexpected EOF. The file might be corrupted.")
        (numel,) = struct.unpack_from("<q", data, at)
        if numel * storage.dtype.itemsize != storage.nbytes:
            raise RuntimeError(f"storage has wrong byte size: expected {storage.nbytes}")
        at += 8
        content = memoryview(data)[at : at + storage.nbytes]
        if storage.untyped.device.type == "cpu" and storage.nbytes:
            memoryview(storage.untyped).cast("B")[: storage.nbytes] = content
        if verify and storage.dtype == taeda.bool:
            check_bools(content)
        at += storage.nbytes
    return result


def check_bools(content: Any) -> None:
    """RuntimeError where the bytes of a bool storage are others than 0 and 1."""
    if bytes(content).translate(None, b"\x00\x01"):
        raise RuntimeError("load: a bool storage holds something else than 0 and 1")


def write_legacy(file: Any, data: bytes, storages: list, protocol: int) -> None:
    """Writes the pickle `data` and the storages that it numbers, as `_pickle_writer` gives them."""
    little = sys.byteorder == "little"
    sizes = {"short": 2, "int": 4, "long": 4}
    info = {"protocol_version": _PROTOCOL_VERSION, "little_endian": little, "type_sizes": sizes}
    for value in (MAGIC_NUMBER, _PROTOCOL_VERSION, info):
        file.write(pickle.dumps(value, protocol))
    file.write(_with_views(data))
    file.write(pickle.dumps([str(key) for key in range(len(storages))], protocol))
    for storage, nbytes, dtype in storages:
        content = bytes(memoryview(on_host(storage)).cast("B")[:nbytes]) if nbytes else b""
        if dtype == taeda.bool:
            content = content.translate(TO_BOOL)
        file.write(struct.pack("<q", nbytes // (1 if dtype is None else dtype.itemsize)))
        file.write(content)


def _with_views(data: bytes) -> bytes:
    """The pickle with None at the end of each name of a storage: it is no view of another."""
    parts, begin, last = [], 0, None
    for opcode, _, position in genops(data):
        if opcode.name == "BINPERSID" and last is not None:
            parts += [data[begin:last], pickle.NONE]
            begin = last
        last = position
    return b"".join([*parts, data[begin:]])
