"""save and load: PyTorch's file format, written safely and read without running anything.

A file is a zip archive with a pickle (``data.pkl``) and one entry for each storage. Saving to a
path writes beside it, syncs and renames, so the path always has the old or the new file. Loading
reads the pickle with an interpreter that knows a list of types (see ``_safe_pickle``); files that
one trusts may be unpickled in full with ``weights_only=False``.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from pickle import UnpicklingError
from typing import IO, Any

import taeda
from taeda import _C, _missing
from taeda._portable import on_host
from taeda.utils.serialization import config

from . import _pickle_writer
from ._kinds import NOT_A_CHECKPOINT, other_kind
from ._legacy import check_bools, load_legacy, write_legacy
from ._more import (
    MAP_LOCATION,
    LoadEndianness,
    SourceChangeWarning,
    check_module_version_greater_or_equal,
    default_byteorder,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    get_unsafe_globals_in_checkpoint,
    location_tag,
    map_file,
    mkdtemp,
    normalize_storage_type,
    register_package,
    restore_by_packages,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
    skips_data,
    storage_to_tensor_type,
    validate_cuda_device,
)
from ._names import StorageType, check_storage_id, named_storage
from ._safe_pickle import NotAllowed, load_safely
from ._safe_pickle import _layout as _get_layout  # noqa: F401
from ._safe_write import ObjectWriter, write_safely
from ._zip_reader import STORED, ZipReader
from ._zip_writer import ZipWriter

__all__ = [
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "LoadEndianness",
    "location_tag",
    "MAP_LOCATION",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "SourceChangeWarning",
    "storage_to_tensor_type",
    "StorageType",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2
# Storages from here on are read straight into their memory: no second copy.
_LARGE_BYTES = 1 << 20
_safe_globals: dict[str, Any] = {}

FileLike = str | os.PathLike | IO[bytes]


# --- what a file may name ---


def _qualified(entry: Any) -> tuple[str, Any]:
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise ValueError(f"Expected tuple of (callable, str path), got {entry}")
        return entry[1], entry[0]
    name = getattr(entry, "__qualname__", None) or getattr(entry, "__name__", None)
    if name is None:
        raise TypeError(f"Expected a class or a function, got {type(entry).__name__}")
    module = entry.__module__
    if module == "taeda" or module.startswith("taeda."):
        module = "torch" + module.removeprefix("taeda")
    return f"{module}.{name}", entry


def add_safe_globals(safe_globals: list) -> None:
    """Lets files name these classes and functions, or (object, "name in the file") pairs."""
    _safe_globals.update(_qualified(entry) for entry in safe_globals)


def get_safe_globals() -> list:
    """What ``add_safe_globals`` was given."""
    return list(_safe_globals.values())


def clear_safe_globals() -> None:
    """Forgets what ``add_safe_globals`` was given."""
    _safe_globals.clear()


class safe_globals:
    """A context in which files may name these classes and functions."""

    def __init__(self, safe_globals: list) -> None:
        self.entries = safe_globals

    def __enter__(self) -> None:
        self._before = dict(_safe_globals)
        add_safe_globals(self.entries)

    def __exit__(self, *exc_info: Any) -> None:
        _safe_globals.clear()
        _safe_globals.update(self._before)


# --- saving ---


@_C._hint_keywords
def save(
    obj: Any,
    f: FileLike,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Writes ``obj`` (tensors, and containers and objects that hold them) to a file.

    Args:
        f: a path, or an object with ``write``. A path is replaced only when all is written.
        pickle_protocol: 2 is what everything reads.
        _use_new_zipfile_serialization: False writes the format that PyTorch had before 1.6.
    """
    if isinstance(f, (str, os.PathLike)):
        folder = os.path.splitext(os.path.basename(os.fspath(f)))[0] or "archive"
    elif callable(getattr(f, "write", None)):
        folder = "archive"
    else:
        raise AttributeError(
            f"expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
            f"got {type(f).__name__}"
        )
    # All that can fail in the object itself fails here, before any file is touched.
    data, storages = _pickle_writer.dump(obj, pickle_protocol)

    def write(file: Any) -> None:
        if not _use_new_zipfile_serialization:
            return write_legacy(file, data, storages, pickle_protocol)
        archive = ZipWriter(file, folder)
        archive.write("data.pkl", data)
        archive.write(".format_version", b"1")
        archive.write(".storage_alignment", b"64")
        if not _disable_byteorder_record:
            archive.write("byteorder", sys.byteorder.encode())
        for key, (storage, nbytes, dtype) in enumerate(storages):
            content = taeda.UntypedStorage(bytes(nbytes)) if skips_data() else on_host(storage)
            archive.write_storage(f"data/{key}", content, nbytes, dtype == taeda.bool)
        archive.write("version", b"3\n")
        archive.close()

    if isinstance(f, (str, os.PathLike)):
        write_safely(f, write)
    else:
        write(ObjectWriter(f))
        if callable(flush := getattr(f, "flush", None)):
            flush()  # readers by the file's name see all of it


# --- loading ---


@_C._hint_keywords
def load(
    f: FileLike,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    verify: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Reads what ``save`` (or ``torch.save``) has written.

    Args:
        f: a path, or an object with ``read``, ``seek`` and ``tell``.
        map_location: where storages go: a device, a dict from device to device, or a function
            ``(storage, location) -> storage``.
        weights_only: True (the default) runs nothing from the file and accepts tensors,
            containers, numbers, text and what ``add_safe_globals`` allows. False unpickles
            anything, which can run any code: only for files you trust.
        mmap: True maps the file instead of reading it; needs a path. Whoever shortens the file
            meanwhile crashes the process.
        verify: True reads all of a mapped file once, as its checksums must be right; otherwise only
            its sizes are checked. What is not mapped is always read and its checksums verified.
            True also asks, mapped or not, that bool storages hold only the bytes 0 and 1.
            Otherwise any byte but 0 is True, as in memory.

    OutOfMemoryError when there is not enough memory for what the file holds.
    """
    try:
        return _load(f, map_location, pickle_module, weights_only, mmap, verify, pickle_load_args)
    except MemoryError:
        raise taeda.OutOfMemoryError("load: not enough memory for what the file holds") from None


def _forced(weights_only: bool | None) -> bool | None:
    """`weights_only` as TORCH_FORCE_WEIGHTS_ONLY_LOAD and TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD have it;
    the second only speaks where the call does not."""
    names = ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    force, force_no = (os.getenv(n, "").lower() in ("1", "y", "yes", "true") for n in names)
    if force and force_no:
        raise RuntimeError(f"Only one of `{names[0]}` or `{names[1]}` should be set, not both.")
    if force:
        return True
    if not force_no or weights_only is not None:
        return weights_only
    import warnings

    warnings.warn(f"{names[1]} is set: the file is loaded with weights_only=False.", stacklevel=4)
    return False


def _load(
    f: FileLike,
    map_location: Any,
    pickle_module: Any,
    weights_only: bool | None,
    mmap: bool | None,
    verify: bool | None,
    pickle_load_args: dict,
) -> Any:
    weights_only = _forced(weights_only)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    mmap = config.load.mmap if mmap is None else mmap
    safe = (weights_only is None and pickle_module is None) or bool(weights_only)
    module = pickle_module or pickle
    options = _Options(map_location, safe, module, pickle_load_args, bool(verify))
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            return _load_file(file, options, bool(mmap))
    if mmap:
        raise ValueError(
            f"f must be a file path in order to use the mmap argument, but got {type(f).__name__}"
        )
    for method in ("read", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load "
                "from a file that is seekable. Please pre-load the data into a buffer like "
                "io.BytesIO and try to load from it instead."
            )
    start = f.tell()
    content = f.read()  # what follows the position, as one file
    result, length = _load_bytes(content, options)
    f.seek(start + length)
    return result


class _Options:
    def __init__(
        self, map_location: Any, safe: bool, module: Any, load_args: dict, verify: bool
    ) -> None:
        self.map_location = map_location
        self.safe = safe
        self.module = module
        self.load_args = load_args
        self.verify = verify


def _load_file(file: IO[bytes], options: _Options, mapped: bool) -> Any:
    if file.read(4) == b"PK\x03\x04":
        return _load_zip(file, options, mapped)
    if mapped:
        raise RuntimeError(
            "mmap can only be used with files saved with `torch.save(_use_new_zipfile_"
            "serialization=True), please torch.save your checkpoint with this option in order to "
            "use mmap."
        )
    file.seek(0)
    return _load_bytes(file.read(), options)[0]


def _load_bytes(content: bytes, options: _Options) -> tuple[Any, int]:
    """(the object, the number of bytes it took)"""
    if content[:4] == b"PK\x03\x04":
        return _load_zip(io.BytesIO(content), options, mapped=False), len(content)
    if not content:
        error = EOFError("Ran out of input: the file is empty")
        error.add_note(NOT_A_CHECKPOINT)
        raise error
    if content[257:262] == b"ustar":
        raise NotImplementedError("load: the tar format of 2016 is not supported")
    end = 0

    def read_pickle(position: int, persistent_load: Any) -> tuple[Any, int]:
        nonlocal end
        result, end = _read_pickle(content, position, persistent_load, options, len(content))
        return result, end

    def place(storage: Any, location: str) -> Any:
        return _place(storage, location, options.map_location)

    try:
        return load_legacy(content, read_pickle, place, options.verify), len(content)
    except UnpicklingError as error:
        if found := other_kind(content):
            error.add_note(f"The file is {found}, and no checkpoint")
            error.add_note(NOT_A_CHECKPOINT)
        raise


def _read_pickle(
    data: bytes, position: int, persistent_load: Any, options: _Options, file_size: int
) -> tuple[Any, int]:
    """(the object, where it ends)"""
    if persistent_load is None:
        persistent_load = _no_storages
    if not options.safe:
        stream = io.BytesIO(data)
        stream.seek(position)
        unpickler = _trusting_unpickler(options.module)(stream, **options.load_args)
        unpickler.persistent_load = persistent_load
        return unpickler.load(), stream.tell()
    encoding = options.load_args.get("encoding", "utf-8")
    try:
        return load_safely(data, position, persistent_load, _safe_globals, file_size, encoding)
    except NotAllowed as error:
        raise UnpicklingError(
            f"Weights only load failed. {error}\nA file from a source that you trust can be loaded "
            "with `weights_only=False`, which runs whatever code it contains."
        ) from None
    except UnpicklingError as error:
        raise UnpicklingError(f"Weights only load failed. {error}") from None


def _no_storages(pid: Any) -> Any:
    raise UnpicklingError("load: a storage is named where none can be")


def _trusting_unpickler(module: Any) -> type:
    """An unpickler that runs the file's code, with taeda for torch."""
    from taeda._tensor import _rebuild_from_type_v2

    from ._rebuild import REBUILD
    from ._safe_pickle import _allowed

    known = _allowed()
    helpers: dict[str, dict[str, Any]] = {
        "torch._utils": REBUILD,
        "torch._tensor": {"_rebuild_from_type_v2": _rebuild_from_type_v2},
    }

    class Unpickler(module.Unpickler):
        def find_class(self, mod_name: str, name: str) -> Any:
            if name in helpers.get(mod_name, ()):
                return helpers[mod_name][name]
            value = known.get(f"{mod_name}.{name}")
            if isinstance(value, (StorageType, taeda.dtype)):
                return value
            if mod_name == "torch" or mod_name.startswith("torch."):
                mod_name = "taeda" + mod_name.removeprefix("torch")
            return super().find_class(mod_name, name)

    return Unpickler


def _load_zip(file: IO[bytes], options: _Options, mapped: bool) -> Any:
    file.seek(0, 2)
    size = file.tell()
    foreign_code = not options.safe or _safe_globals or callable(options.map_location)
    archive = ZipReader(file, 3 * size, background=not foreign_code)
    names = archive.entries
    folder = next((n.removesuffix("data.pkl") for n in names if n.endswith("data.pkl")), None)
    if folder is None:
        if any(name.endswith("constants.pkl") for name in names):
            raise NotImplementedError("load: TorchScript archives are not supported")
        raise RuntimeError("PytorchStreamReader failed locating file data.pkl: file not found")
    byteorder = default_byteorder()
    if folder + "byteorder" in names:
        byteorder = archive.read(folder + "byteorder").decode("ascii", "replace")
        if byteorder not in ("little", "big"):
            raise ValueError("Unknown endianness type: " + byteorder)
    memory = map_file(file) if mapped else None
    storages: dict[str, tuple[StorageType, Any]] = {}

    def persistent_load(pid: Any) -> Any:
        kind, key, location, numel = check_storage_id(pid, (5,))
        if key not in storages:
            name = f"{folder}data/{key}"
            _check_entry(archive, name, key, numel * kind.dtype.itemsize)
            if _is_meta(options.map_location):
                untyped = taeda.UntypedStorage(archive.entries[name].size, device="meta")
            else:
                if memory is not None and byteorder == sys.byteorder:
                    untyped = _mapped_storage(archive, name, memory, options.verify)
                else:
                    untyped = _read_storage(archive, name, kind.dtype, byteorder)
                if options.verify and kind.dtype == taeda.bool:
                    check_bools(untyped)
                untyped = _place(untyped, location, options.map_location)
            storages[key] = kind, named_storage(untyped, kind)
        known, storage = storages[key]
        if known is kind:
            return storage
        return named_storage(getattr(storage, "_untyped_storage", storage), kind)

    data = archive.read(folder + "data.pkl")
    with archive:  # until all checksums are verified
        return _read_pickle(data, 0, persistent_load, options, size)[0]


def _check_entry(archive: ZipReader, name: str, key: str, nbytes: int) -> None:
    entry = archive.entries.get(name)
    if entry is None:
        raise RuntimeError(
            f"PytorchStreamReader failed locating file data/{key[:40]}: file not found"
        )
    if entry.size != nbytes:
        raise RuntimeError(
            f"load: the storage {key[:40]} has {entry.size} bytes in the file, but its "
            f"description says {nbytes if abs(nbytes) < 2**63 else 'more'}"
        )


def _read_storage(archive: ZipReader, name: str, dtype: Any, byteorder: str) -> Any:
    entry = archive.entries[name]
    if skips_data():
        return taeda.UntypedStorage(bytes(entry.size))
    plain = entry.method == STORED and byteorder == sys.byteorder
    if plain and entry.size >= _LARGE_BYTES:
        storage = taeda.UntypedStorage(entry.size)
        archive.read_into(name, memoryview(storage).cast("B"))
        return storage
    data = archive.read(name)
    if byteorder != sys.byteorder:
        data = _swap_bytes(data, dtype)
    return taeda.UntypedStorage(data)


def _swap_bytes(data: bytes, dtype: Any) -> bytes:
    from array import array

    size = dtype.itemsize // (2 if dtype.is_complex else 1)
    if size == 1:
        return data
    elements = array({2: "H", 4: "I", 8: "Q"}[size], data)
    elements.byteswap()
    return elements.tobytes()


def _mapped_storage(archive: ZipReader, name: str, memory: Any, verify: bool) -> Any:
    entry = archive.entries[name]
    if entry.packed != entry.size:
        raise RuntimeError("load: compressed files cannot be mapped; leave mmap out")
    storage = taeda.UntypedStorage._from_buffer(memory, archive.content_offset(name), entry.size)
    if verify:
        archive.check(name, memoryview(storage).cast("B"))
    return storage


# --- locations ---


def _is_meta(map_location: Any) -> bool:
    if isinstance(map_location, taeda.device):
        return map_location.type == "meta"
    return map_location == "meta"


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage at ``location``, or RuntimeError if there is no such device here."""
    if location == "cpu":
        return storage
    if location == "meta":
        return taeda.UntypedStorage(storage.nbytes(), device="meta")
    kind = location.partition(":")[0]
    if kind == "cuda" and not taeda.cuda.is_available():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
            "False. If you are running on a CPU-only machine, please use torch.load with "
            "map_location=torch.device('cpu') to map your storages to the CPU."
        )
    if kind == "cuda":
        index, count = taeda.device(location).index, taeda.cuda.device_count()
        if index is not None and index >= count:
            raise RuntimeError(
                f"Attempting to deserialize object on CUDA device {index} but "
                f"torch.cuda.device_count() is {count}. Please use torch.load with map_location to "
                "map your storages to an existing device."
            )
        return taeda.UntypedStorage(on_host(storage), device=location)
    placed = restore_by_packages(storage, location)
    if placed is not None:
        return placed
    raise RuntimeError(
        "don't know how to restore data location of torch.storage.UntypedStorage "
        f"(tagged with {location[:40]})"
    )


def _place(storage: Any, location: str, map_location: Any) -> Any:
    """The storage where ``map_location`` wants it, perhaps one without memory (meta)."""
    if map_location is None:
        placed = default_restore_location(storage, location)
    elif isinstance(map_location, dict):
        placed = default_restore_location(storage, str(map_location.get(location, location)))
    elif isinstance(map_location, (str, taeda.device)):
        placed = default_restore_location(storage, str(map_location))
    elif callable(map_location):
        placed = map_location(storage, location)
        if placed is None:
            placed = default_restore_location(storage, location)
    else:
        raise TypeError(
            "map_location should be None, a device, a dict or a function, "
            f"got {type(map_location).__name__}"
        )
    placed = getattr(placed, "_untyped_storage", placed)
    if not isinstance(placed, taeda.UntypedStorage) or placed.nbytes() < storage.nbytes():
        raise TypeError(
            f"map_location gave {placed!r:.200} for a storage of {storage.nbytes()} bytes; "
            "expected a storage of that size, or None"
        )
    return placed


__getattr__, __dir__ = _missing.attributes(__name__)
