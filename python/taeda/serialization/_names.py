"""The names that PyTorch's files use for types, and what they are here."""

from __future__ import annotations

import re
from pickle import UnpicklingError
from typing import Any

import taeda

# Every name of a dtype in a file -> dtype.
DTYPES = {name: dtype for name, dtype in vars(taeda._C).items() if isinstance(dtype, taeda.dtype)}
# Storage class name in a file -> dtype of its elements.
STORAGE_DTYPES = {
    f"{dtype._class_name}Storage": dtype for dtype in DTYPES.values() if not dtype._is_storage_type
}
STORAGE_NAMES = {dtype: name for name, dtype in STORAGE_DTYPES.items()}
STORAGE_DTYPES["UntypedStorage"] = taeda.uint8


class StorageType:
    """A storage class named in a file: a dtype, or untyped bytes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.dtype = STORAGE_DTYPES[name]


def named_storage(untyped: Any, kind: StorageType) -> Any:
    """What a storage of this class is here: an UntypedStorage, or a TypedStorage on one."""
    if kind.name == "UntypedStorage":
        return untyped
    return taeda.storage.TypedStorage(wrap_storage=untyped, dtype=kind.dtype, _internal=True)


_TEXT_ID = re.compile(
    r"\('storage', <class 'torch\.(?:storage\.)?(\w{1,30})'>, '(\d{1,20})', "
    r"'(\w{1,20}(?::\d{1,5})?)', (\d{1,20})(?:, None)?\)",
    re.ASCII,
)


def _from_text(text: str) -> Any:
    """What PyTorch means by an id in protocol 0, which is the ``str`` of a tuple there; it does not
    read these files itself."""
    match = _TEXT_ID.fullmatch(text)
    if not match or match[1] not in STORAGE_DTYPES:
        return None
    return "storage", StorageType(match[1]), match[2], match[3], int(match[4])


def check_storage_id(pid: Any, lengths: tuple[int, ...]) -> tuple[StorageType, str, str, int]:
    """(class, key, location, number of elements) of a persistent id, which may be anything."""
    if type(pid) is str:
        pid = _from_text(pid)
    if type(pid) is not tuple or len(pid) not in lengths or pid[0] != "storage":
        raise UnpicklingError("load: the file refers to something else than a storage")
    kind, key, location, numel = pid[1:5]
    if not isinstance(kind, StorageType) or type(key) is not str or type(numel) is not int:
        raise UnpicklingError("load: the file describes a storage in an unknown way")
    if type(location) is not str:
        raise UnpicklingError("load: the location of a storage is not text")
    return kind, key, location, numel
