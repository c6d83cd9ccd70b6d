"""Names of ``torch.multiprocessing.reductions`` for how PyTorch sends storages, which is not
taeda's way: those that hold are here, the others raise when called."""

from __future__ import annotations

from typing import Any

import taeda
from taeda import Tensor, _missing
from taeda._utils import _rebuild_tensor
from taeda.storage import TypedStorage

from .reductions import rebuild_typed_storage, reduce_typed_storage

_WHY = "taeda sends storages in segments of shared memory; use torch.multiprocessing's queues"


class StorageWeakRef:
    """A storage's identity, by where its memory is, which can be compared while the storage lives.

    It does not keep the storage alive; another one may get the same memory then. Whether it is gone
    cannot be asked: ``expired`` raises.
    """

    __slots__ = ("cdata",)

    def __init__(self, storage: Any) -> None:
        untyped = storage._untyped_storage if isinstance(storage, TypedStorage) else storage
        self.cdata = untyped.data_ptr() or hash(untyped)

    @classmethod
    def from_weakref(cls, cdata: int) -> StorageWeakRef:
        """One with this identity."""
        made = cls.__new__(cls)
        made.cdata = cdata
        return made

    def expired(self) -> bool:
        """Raises NotImplementedError."""
        raise NotImplementedError(
            "StorageWeakRef.expired: taeda's storages cannot be asked; keep a weakref to the tensor"
        )

    def __hash__(self) -> int:
        return self.cdata

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata


def rebuild_tensor(cls: type, storage: Any, metadata: tuple) -> Tensor:
    """A tensor in a storage, of (storage_offset, size, stride, requires_grad)."""
    storage_offset, size, stride, requires_grad = metadata
    tensor = _rebuild_tensor(storage, storage_offset, size, stride)
    if cls is taeda.nn.Parameter:
        return taeda.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


rebuild_typed_storage_child = rebuild_typed_storage


def rebuild_storage_empty(cls: type) -> Any:
    """A storage of no bytes."""
    return cls()


reduce_typed_storage_child = reduce_typed_storage

_RAISING = (
    "fd_id rebuild_cuda_tensor rebuild_event rebuild_meta_tensor rebuild_nested_tensor "
    "rebuild_sparse_compressed_tensor rebuild_sparse_coo_tensor rebuild_storage_fd "
    "rebuild_storage_filename reduce_event reduce_nested_tensor reduce_sparse_tensor "
    "storage_from_cache"
).split()
for _name in _RAISING:
    globals()[_name] = _missing.function(f"torch.multiprocessing.reductions.{_name}", _WHY)
SharedCache = _missing.class_("torch.multiprocessing.reductions.SharedCache", _WHY)
del _name

__all__ = [
    "SharedCache",
    "StorageWeakRef",
    "rebuild_storage_empty",
    "rebuild_tensor",
    "rebuild_typed_storage",
    "rebuild_typed_storage_child",
    "reduce_typed_storage",
    "reduce_typed_storage_child",
    *_RAISING,
]
