"""What both kinds of storages do besides holding bytes: copies, conversions, questions."""

from __future__ import annotations

from taeda import _C
from taeda._C import UntypedStorage

TYPE_CHECKING = False  # typing's own would load typing
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CASTS = {
    "bool": _C.bool,
    "byte": _C.uint8,
    "char": _C.int8,
    "short": _C.int16,
    "int": _C.int32,
    "long": _C.int64,
    "half": _C.float16,
    "bfloat16": _C.bfloat16,
    "float": _C.float32,
    "double": _C.float64,
    "complex_float": _C.complex64,
    "complex_double": _C.complex128,
}


def elements(storage: Any) -> Any:
    """A tensor on the storage's memory; one of bytes where it has no dtype."""
    dtype = getattr(storage, "_dtype", _C.uint8)
    untyped = getattr(storage, "_untyped_storage", storage)
    n = untyped.nbytes() // dtype.itemsize
    return _C._tensor_from_storage(untyped, dtype, 0, (n,), (1,))


class StorageMethods:
    """Methods of UntypedStorage, where ``install`` puts them, and of TypedStorage, its subclass.

    They need ``untyped()``, ``_like(untyped)`` (a storage of the same kind) and ``device``.
    """

    filename = None  # no storage knows the file that it was mapped from
    is_sparse = False

    @property
    def is_cuda(self: Any) -> bool:
        return self.device.type == "cuda"

    def get_device(self: Any) -> int | None:
        return self.device.index

    def is_pinned(self: Any, device: Any = None) -> bool:
        return False

    def pin_memory(self: Any, device: Any = None) -> Any:
        return self._like(elements(self).pin_memory().untyped_storage())

    def copy_(self: Any, source: Any, non_blocking: bool | None = None) -> Any:
        """Takes over the bytes of a storage of the same size."""
        if not isinstance(source, (StorageMethods, UntypedStorage)):
            raise TypeError(
                "copy_(): argument 'src' (position 1) must be torch.Storage, "
                f"not {type(source).__name__}"
            )
        own, other = self.untyped(), source.untyped()  # type: ignore[union-attr]
        if own.nbytes() != other.nbytes():
            raise RuntimeError(
                f"size does not match, self was {own.nbytes()} bytes "
                f"but src was {other.nbytes()} bytes"
            )
        elements(own).copy_(elements(other))
        return self

    def to(self: Any, *, device: Any, non_blocking: bool = False) -> Any:
        """The storage itself if it is there already, else a copy."""
        device = _C.device(device)
        if device == self.device:
            return self
        return self._like(elements(self.untyped()).to(device).untyped_storage())

    def cpu(self: Any) -> Any:
        return self.to(device="cpu")

    def cuda(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
        return self.to(device="cuda" if device is None else device)


class UntypedMethods:
    """Methods of UntypedStorage alone."""

    def untyped(self: Any) -> Any:
        return self

    def _like(self: Any, untyped: Any) -> Any:
        return untyped

    def element_size(self: Any) -> int:
        return 1

    def type(self: Any) -> str:
        return "torch.storage.UntypedStorage"

    def new(self: Any) -> Any:
        return UntypedStorage(0, device=self.device)

    def __iter__(self: Any) -> Iterator:
        return (self[i] for i in range(len(self)))

    def fill_(self: Any, value: int) -> Any:
        """Sets every byte to the number's last eight bits."""
        if not isinstance(value, int):
            raise RuntimeError(f"fill_ expects int, but got {type(value).__name__}")
        elements(self).fill_(value & 255)
        return self

    def byteswap(self: Any, dtype: Any) -> None:
        """Reverses, in place, the bytes of each number of this dtype (of both parts of complex)."""
        size = dtype.itemsize // (2 if dtype.is_complex else 1)
        if self.nbytes() % size:
            raise RuntimeError(f"the length of data is not a multiple of {size}")
        numbers = elements(self).view(-1, size)
        numbers.copy_(numbers.flip(1))

    @staticmethod
    def from_file(filename: str, shared: bool = False, nbytes: int = 0) -> Any:
        """``nbytes`` of a file, mapped. Shared: what is written goes into the file, which grows
        where it is shorter."""
        import mmap
        import os

        if nbytes == 0:
            return UntypedStorage(0)
        file = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY)
        try:
            size = os.fstat(file).st_size
            if shared and size < nbytes:
                os.truncate(file, nbytes)
            elif size < nbytes:
                raise RuntimeError(f"from_file: {filename} has {size} bytes, not {nbytes}")
            access = mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY
            return UntypedStorage._from_buffer(mmap.mmap(file, nbytes, access=access), 0, nbytes)
        finally:
            os.close(file)


def _cast(name: str, dtype: Any) -> Any:
    def cast(self: Any) -> Any:
        from taeda.storage import TypedStorage

        converted = elements(self).to(dtype, copy=True)
        return TypedStorage(wrap_storage=converted.untyped_storage(), dtype=dtype, _internal=True)

    cast.__name__ = name
    cast.__doc__ = f"A copy with each element converted to {dtype}."
    return cast


def install() -> None:
    for name, dtype in CASTS.items():
        setattr(StorageMethods, name, _cast(name, dtype))
    for methods in (StorageMethods, UntypedMethods):
        for name, value in vars(methods).items():
            if name == "__iter__" or not name.startswith("__"):
                setattr(UntypedStorage, name, value)


install()
