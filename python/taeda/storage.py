"""Storages: the memory that tensors view."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from taeda import _C, _dtypes
from taeda import _storage_removal as _removal
from taeda._C import UntypedStorage
from taeda._storage_methods import StorageMethods, elements

__all__ = ["TypedStorage", "UntypedStorage"]


def _load_from_bytes(b: bytes) -> Any:
    """The storage in an archive: what PyTorch's plain pickles call."""
    import io

    import taeda

    loaded = taeda.load(io.BytesIO(b), weights_only=False)
    if isinstance(loaded, (TypedStorage, UntypedStorage)):
        return loaded
    return _wrap(loaded.untyped, loaded.dtype)


_TYPED_FORMS = """
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)"""
_LEGACY_FORMS = """
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)"""


def _refuse(name: str, forms: str, error: type[Exception], why: str) -> NoReturn:
    raise error(
        f"{name} received an invalid combination of arguments. Expected one of:{forms}\n{why}"
    )


def _check_wrapped(refuse: Callable[..., NoReturn], args: tuple, storage: Any) -> None:
    if args:
        refuse(RuntimeError, "No positional arguments should be given when using 'wrap_storage'")
    if not isinstance(storage, UntypedStorage):
        refuse(
            TypeError, f"Argument 'wrap_storage' must be UntypedStorage, but got {type(storage)}"
        )


def _made_of(refuse: Callable[..., NoReturn], args: tuple, dtype: Any, device: Any) -> Any:
    """The memory for a number of elements, none without one, or with a sequence's values."""
    if len(args) > 1:
        refuse(RuntimeError, "Too many positional arguments")
    of = args[0] if args else 0
    if isinstance(of, int) or (hasattr(of, "__index__") and not hasattr(of, "__len__")):
        return UntypedStorage(operator.index(of) * dtype.itemsize, device=device)
    if not isinstance(of, Sequence):
        refuse(TypeError, f"Argument type not recognized: {type(of)}")
    from taeda import tensor

    return tensor(of, dtype=dtype, device=device).untyped_storage()


def _wrap(untyped: Any, dtype: Any) -> TypedStorage:
    """A storage seen as elements of a dtype."""
    return TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


class TypedStorage(StorageMethods):
    """An UntypedStorage seen as elements of one dtype; what ``x.storage()`` returns.

    Also made of a number of elements, whose values are whatever was in the memory, or of a
    sequence of values.
    """

    def __init__(
        self,
        *args: Any,
        wrap_storage: Any = None,
        dtype: Any = None,
        device: Any = None,
        _internal: bool = False,
    ) -> None:
        if not _internal:
            _removal.warn()
        refuse = functools.partial(_refuse, "TypedStorage.__init__", _TYPED_FORMS)
        if wrap_storage is not None:
            _check_wrapped(refuse, args, wrap_storage)
            if dtype is None:
                refuse(RuntimeError, "Argument 'dtype' must be specified")
            if not isinstance(dtype, _C.dtype):
                refuse(TypeError, f"Argument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                refuse(
                    RuntimeError,
                    "Argument 'device' should not be specified when 'wrap_storage' is given",
                )
            self._dtype, self._untyped_storage = dtype, wrap_storage
            return
        if not isinstance(dtype, _C.dtype | None):
            raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
        self._dtype = _C.get_default_dtype() if dtype is None else dtype
        self._untyped_storage = _made_of(refuse, args, self._dtype, device)

    @property
    def dtype(self) -> Any:
        return self._dtype

    def _elements(self) -> Any:
        return elements(self)

    def _check_has_values(self) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def _like(self, untyped: Any) -> TypedStorage:
        return _wrap(untyped, self._dtype)

    @classmethod
    def from_buffer(cls, *args: Any, dtype: Any, **kwargs: Any) -> TypedStorage:
        """A copy of the elements in a buffer; see UntypedStorage.from_buffer."""
        return _wrap(UntypedStorage.from_buffer(*args, dtype=dtype, **kwargs), dtype)

    def untyped(self) -> Any:
        return self._untyped_storage

    def size(self) -> int:
        return len(self)

    def __len__(self) -> int:
        return self._untyped_storage.nbytes() // self._dtype.itemsize

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        return self._dtype.itemsize

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def resize_(self, size: int) -> None:
        """Makes it a storage of ``size`` elements; the first ones stay."""
        self._untyped_storage.resize_(size * self._dtype.itemsize)

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _new_shared(self, size: int, *, device: Any = None) -> TypedStorage:
        """A storage of ``size`` elements in shared memory, as collate functions ask for it."""
        return self._like(UntypedStorage._new_shared(size * self._dtype.itemsize, device=device))

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    @property
    def device(self) -> Any:
        return self._untyped_storage.device

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def tolist(self) -> list:
        return self._elements().tolist()

    def __sizeof__(self) -> int:
        return super().__sizeof__() + self.nbytes()

    def __getitem__(self, index: int) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        self._check_has_values()
        return self._elements()[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._check_has_values()
        self._elements()[index] = value

    def __iter__(self) -> Iterator:
        return iter(self.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        if isinstance(value, StorageMethods):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._elements().fill_(value)
        return self

    def clone(self) -> TypedStorage:
        return _wrap(self._untyped_storage.clone(), self._dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedStorage) and other.data_ptr() == self.data_ptr()

    def __hash__(self) -> int:
        return hash(self.data_ptr())

    def type(self) -> str:
        return _dtypes.type_text(self._dtype).replace("Tensor", "Storage")

    def pickle_storage_type(self) -> str:
        return self.type().rpartition(".")[2]

    def __copy__(self) -> TypedStorage:
        return self.clone()

    def __reduce__(self) -> tuple:
        from taeda._portable import reduce_typed_storage

        return reduce_typed_storage(self._untyped_storage, self._dtype)

    def __deepcopy__(self, memo: dict) -> TypedStorage:
        import copy

        return _wrap(copy.deepcopy(self._untyped_storage, memo), self._dtype)

    def __repr__(self) -> str:
        values = "".join(f" {v}\n" for v in self.tolist())
        kind = f"torch.storage.TypedStorage(dtype={self._dtype}, device={self.device})"
        return f"{values}[{kind} of size {len(self)}]"


_removal.deprecate(TypedStorage, StorageMethods)


class _StorageKind(type):
    """The class of torch.FloatStorage: its instances are the TypedStorages of its dtype."""

    _dtype: Any

    @property
    def dtype(cls) -> Any:
        _removal.warn()
        return cls._dtype

    def __instancecheck__(cls, instance: Any) -> bool:
        kind = getattr(cls, "_dtype", None)
        return isinstance(instance, TypedStorage) and (kind is None or instance._dtype == kind)


class _LegacyStorage(metaclass=_StorageKind):
    """An old name of TypedStorage with its dtype."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        if not kwargs.pop("_internal", False):
            _removal.warn()
        refuse = functools.partial(_refuse, f"{cls}.__new__", _LEGACY_FORMS)
        for name in ("device", "dtype"):
            if name in kwargs:
                refuse(RuntimeError, f"Keyword argument '{name}' cannot be specified")
        wrapped = kwargs.pop("wrap_storage", None)
        if kwargs:
            name = next(iter(kwargs))
            raise TypeError(f"TypedStorage.__new__() got an unexpected keyword argument '{name}'")
        if wrapped is None:
            return _wrap(_made_of(refuse, args, cls._dtype, "cpu"), cls._dtype)
        _check_wrapped(refuse, args, wrapped)
        if wrapped.device.type != "cpu":
            refuse(
                RuntimeError, f"Device of 'wrap_storage' must be cpu, but got {wrapped.device.type}"
            )
        return _wrap(wrapped, cls._dtype)

    @classmethod
    def from_buffer(cls, *args: Any, **kwargs: Any) -> TypedStorage:
        """A copy of the elements in a buffer; see UntypedStorage.from_buffer."""
        _removal.warn()
        return _wrap(UntypedStorage.from_buffer(*args, dtype=cls._dtype, **kwargs), cls._dtype)

    _from_buffer = from_buffer

    @classmethod
    def from_file(cls, filename: Any, shared: bool = False, size: int = 0) -> TypedStorage:
        """The first `size` elements of a file, mapped; see UntypedStorage.from_file."""
        nbytes = size * cls._dtype.itemsize
        return _wrap(UntypedStorage.from_file(filename, shared, nbytes), cls._dtype)


# name -> class: FloatStorage, HalfStorage, ...
CLASSES = {
    f"{dtype._class_name}Storage": _StorageKind(
        f"{dtype._class_name}Storage", (_LegacyStorage,), {"_dtype": dtype, "__module__": "torch"}
    )
    for dtype in _dtypes._DTYPES
    if not dtype._is_storage_type
}


_storage_classes = {UntypedStorage, TypedStorage, *CLASSES.values()}


def _dtype_to_storage_type_map() -> dict[Any, str]:
    """dtype -> the name of its class of storages."""
    return {kind._dtype: name for name, kind in CLASSES.items()}


def _storage_type_to_dtype_map() -> dict[str, Any]:
    """The name of a class of storages -> its dtype."""
    return {name: kind._dtype for name, kind in CLASSES.items()}


def _get_always_warn_typed_storage_removal() -> bool:
    """Whether each use of a TypedStorage warns, not only the first."""
    return _removal._State.always


def _set_always_warn_typed_storage_removal(always_warn: bool) -> None:
    if not isinstance(always_warn, bool):
        raise AssertionError(f"expected a bool, but got {type(always_warn).__name__}")
    _removal._State.always = always_warn


def _reset_warn_typed_storage_removal() -> None:
    """The next use warns again."""
    _removal._State.given = False


_warn_typed_storage_removal = _removal.warn
