"""What is seldom asked of ``torch.serialization``: options, locations, what a file names."""

from __future__ import annotations

import mmap
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from enum import Enum
from pickletools import genops
from tempfile import mkdtemp
from typing import IO, Any, TypeAlias

import taeda
from taeda.utils.serialization import config
from taeda.version import TorchVersion

from ._safe_pickle import _allowed
from ._zip_reader import ZipReader

__all__ = [
    "LoadEndianness",
    "MAP_LOCATION",
    "SourceChangeWarning",
    "check_module_version_greater_or_equal",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_unsafe_globals_in_checkpoint",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
]

MAP_LOCATION: TypeAlias = Callable[[Any, str], Any] | taeda.device | str | dict[str, str] | None


class SourceChangeWarning(Warning):
    """PyTorch's, for modules whose source differs from the one in an old file; never given here,
    where the source in a file is not looked at."""


# --- options ---


class LoadEndianness(Enum):
    """The byte order of files that do not tell theirs."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


def get_default_load_endianness() -> LoadEndianness | None:
    """What ``set_default_load_endianness`` was given; None stands for little."""
    return config.load.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Sets the byte order of files that do not tell theirs."""
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    config.load.endianness = endianness


def get_default_mmap_options() -> int | None:
    """The flags with which ``load(mmap=True)`` maps files."""
    return config.load.mmap_flags


class set_default_mmap_options:
    """Sets the flags with which ``load(mmap=True)`` maps files, also as a context:
    ``mmap.MAP_PRIVATE``, or ``mmap.MAP_SHARED`` for writes to tensors that reach the file, whose
    checksums are wrong from then on: ``load`` takes it with ``mmap=True`` alone."""

    def __init__(self, flags: int) -> None:
        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE "
                f"or mmap.MAP_SHARED, but got {flags}"
            )
        self._before = config.load.mmap_flags
        config.load.mmap_flags = flags

    def __enter__(self) -> None: ...

    def __exit__(self, *exc_info: Any) -> None:
        config.load.mmap_flags = self._before


def default_byteorder() -> str:
    """The byte order of files that do not tell theirs."""
    if config.load.endianness is LoadEndianness.NATIVE:
        return sys.byteorder
    return "big" if config.load.endianness is LoadEndianness.BIG else "little"


def map_file(file: IO[bytes]) -> mmap.mmap:
    """The file in memory: private unless ``set_default_mmap_options`` says shared."""
    if config.load.mmap_flags == mmap.MAP_PRIVATE:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    writable = os.open(file.name, os.O_RDWR)
    try:
        return mmap.mmap(writable, 0, access=mmap.ACCESS_WRITE)
    finally:
        os.close(writable)


def get_crc32_options() -> bool:
    """What ``set_crc32_options`` was given."""
    return config.save.compute_crc32


def set_crc32_options(compute_crc32: bool) -> None:
    """PyTorch leaves checksums out of its files for False. Files written here always have them,
    as they cost little and ``load`` verifies them."""
    config.save.compute_crc32 = bool(compute_crc32)


_skipping: list[bool] = []


class skip_data:
    """A context in which ``save`` leaves storages zero and ``load`` does not read them."""

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        _skipping.append(True)

    def __exit__(self, *exc_info: Any) -> None:
        _skipping.pop()


def skips_data() -> bool:
    """Whether the program is in a block of ``skip_data``."""
    return bool(_skipping)


# --- locations ---

# (priority, storage -> location or None, (storage, location) -> storage or None)
_packages: list[tuple[int, Callable, Callable]] = []


def register_package(priority: int, tagger: Callable, deserializer: Callable) -> None:
    """Names locations of storages, and puts storages there, in one's own way.

    Args:
        priority: those with lower numbers are asked first.
        tagger: gives the location of a storage as text, or None for another to say it.
        deserializer: gives the storage at a location, or None.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """How a file says where a storage is: "cpu", "cuda:0", "meta"."""
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    return str(storage.device)


def restore_by_packages(storage: Any, location: str) -> Any:
    """What a registered deserializer gives, or None."""
    for _, _, deserializer in _packages:
        placed = deserializer(storage, location)
        if placed is not None:
            return placed
    return None


def validate_cuda_device(location: str) -> int:
    """The index in "cuda:1"; RuntimeError where there is no such device."""
    from . import default_restore_location

    default_restore_location(taeda.UntypedStorage(0), location)
    return taeda.device(location).index or 0


def normalize_storage_type(storage_type: Any) -> Any:
    """The class of storages that stands for ``torch.FloatStorage`` and the like in files."""
    return getattr(taeda, storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """``torch.FloatTensor`` for a storage of float32, and so on."""
    return getattr(taeda, storage.type().rpartition(".")[2].replace("Storage", "Tensor"))


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple, error_if_malformed: bool = True
) -> bool:
    """Whether a module's ``__version__`` is that or later."""
    required = ".".join(map(str, req_version_tuple))
    try:
        return TorchVersion(module.__version__) >= required
    except Exception as error:
        message = f"'{module.__name__}' module version string is malformed '{module.__version__}'"
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing anyway", stacklevel=2)
        return True


# --- what a file names ---

_STRINGS = ("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "STRING")


def _globals(data: bytes) -> set[str]:
    """The "module.name" that a pickle refers to; nothing is run."""
    found: set[str] = set()
    strings: list[Any] = ["", ""]
    memo: dict[Any, Any] = {}
    for opcode, argument, _ in genops(data):
        name: Any = opcode.name
        if name == "GLOBAL":
            found.add(str(argument).replace(" ", "."))
        elif name == "STACK_GLOBAL":
            found.add(f"{strings[-2]}.{strings[-1]}")
        elif name in _STRINGS:
            strings.append(argument)
        elif name.endswith("PUT") or name == "MEMOIZE":
            memo[len(memo) if argument is None else argument] = strings[-1]
        elif name.endswith("GET"):
            strings.append(memo[argument])
    return found


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The classes and functions in a file that ``load`` refuses as long as nothing allows them."""
    from . import _safe_globals

    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return get_unsafe_globals_in_checkpoint(file)
    f.seek(0)
    if f.read(4) != b"PK\x03\x04":
        raise ValueError("Expected input to be a checkpoint returned by torch.save")
    reader = ZipReader(f, 3 * f.seek(0, 2))
    name = next((n for n in reader.entries if n.endswith("data.pkl")), None)
    if name is None:
        raise pickle.UnpicklingError("get_unsafe_globals_in_checkpoint: there is no data.pkl")
    return sorted(_globals(reader.read(name)) - set(_allowed()) - set(_safe_globals))
