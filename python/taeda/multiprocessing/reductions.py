"""How multiprocessing's pickler sends tensors and storages: as handles of shared memory."""

from __future__ import annotations

from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import taeda
from taeda import Tensor, UntypedStorage
from taeda._tensor import _rebuild_meta_tensor, _rebuild_tensor
from taeda.storage import TypedStorage

__all__ = ["init_reductions", "reduce_storage", "reduce_tensor"]


def _rebuild_storage(handle: Any, nbytes: int) -> UntypedStorage:
    import os

    number = handle.detach()
    try:
        return UntypedStorage._from_shared(number, nbytes)
    finally:
        os.close(number)


def reduce_storage(storage: UntypedStorage) -> tuple:
    """Moves the storage to shared memory and names that."""
    if storage.device.type == "meta":
        return UntypedStorage, (storage.nbytes(), "meta")
    storage.share_memory_()
    return _rebuild_storage, (DupFd(storage._shared_handle()), storage.nbytes())


def reduce_tensor(tensor: Tensor) -> tuple:
    """A leaf by its storage and layout; RuntimeError for tensors with a history."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd "
            "does not support crossing process boundaries.  If you just want to transfer the data, "
            "call detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    if tensor.is_meta:
        return _rebuild_meta_tensor, (
            tensor.dtype,
            tuple(tensor.size()),
            tensor.stride(),
            tensor.requires_grad,
        )
    return _rebuild_tensor, (
        type(tensor),
        tensor.untyped_storage(),
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.size()),
        tensor.stride(),
        tensor.requires_grad,
        tensor.__dict__ or None,
    )


def _reduce_typed(storage: TypedStorage) -> tuple:
    return TypedStorage, (storage.untyped(), storage.dtype)


def init_reductions() -> None:
    """Tells multiprocessing's pickler."""
    ForkingPickler.register(UntypedStorage, reduce_storage)
    ForkingPickler.register(TypedStorage, _reduce_typed)
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(taeda.nn.Parameter, reduce_tensor)
    ForkingPickler.register(taeda.nn.Buffer, reduce_tensor)
