"""Batches as messages of a ``_WorkerChannel``: a pickle, with tensors and arrays beside it.

The pickle holds the structure; what has memory (tensors, storages, NumPy arrays) travels as bytes
of shared memory, in the order in which the pickle asks for it.
"""

from __future__ import annotations

import io
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import taeda
from taeda import _C, Tensor, UntypedStorage
from taeda._tensor_state import refuse_history, set_state, state_of

__all__ = ["dumps", "loads"]

_WASTE_BYTES = 4096  # that a view's gaps may have
_PLACEHOLDER = bytearray()  # writable: pickle would make a read-only view of what is not


def _itself(x: Any) -> Any:
    return x


def _rebuild_subclass(kind: type, data: Tensor, requires_grad: bool, state: Any) -> Any:
    if kind in (taeda.nn.Parameter, taeda.nn.Buffer):
        result: Any = kind(data)
    else:
        result = data.as_subclass(kind) if kind is not Tensor else data
    if result.requires_grad != requires_grad:
        result.requires_grad_(requires_grad)
    set_state(result, state)
    return result


def _is_wasteful(tensor: Tensor) -> bool:
    """Whether its elements are few in the range of memory that they lie in."""
    if tensor.is_contiguous():
        return False
    span = sum((n - 1) * stride for n, stride in zip(tensor.size(), tensor.stride())) + 1
    return (span - 2 * tensor.numel()) * tensor.element_size() > _WASTE_BYTES


class _Aside:
    """What a pickle leaves out, in its order. (No part of the pickler, which would be a cycle.)"""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self.next: Any = None

    def __call__(self, buffer: pickle.PickleBuffer) -> bool:
        if self.next is None:  # an object's own, a NumPy array's
            self.items.append(UntypedStorage._from_buffer(buffer.raw()))
        else:
            self.items.append(self.next)
            self.next = None
        return False


class _Pickler(pickle.Pickler):
    """Leaves out what has memory; the pickle has a placeholder for it."""

    def __init__(self, file: Any, aside: _Aside) -> None:
        super().__init__(file, 5, buffer_callback=aside)
        self._aside = aside

    def _item(self, x: Any) -> tuple:
        self._aside.next = x
        return _itself, (pickle.PickleBuffer(_PLACEHOLDER),)

    def reducer_override(self, x: Any) -> Any:
        kind = type(x)
        if kind is Tensor or issubclass(kind, Tensor):
            return self._tensor(x, kind)
        if kind is UntypedStorage:
            return self._item(x) if x.device.type == "cpu" else NotImplemented
        reduce = ForkingPickler._extra_reducers.get(kind)  # type: ignore[attr-defined]
        return NotImplemented if reduce is None else reduce(x)

    def _tensor(self, x: Any, kind: type) -> Any:
        refuse_history(x)
        with _C.DisableTorchFunctionSubclass():
            in_memory = x.layout is taeda.strided and x.is_cpu and not x.is_nested
            if not in_memory or not _has_memory(x, kind):
                return NotImplemented  # it knows what it consists of
            has_bits = x.is_conj() or x.is_neg()  # its memory is not what it reads as
            if kind is Tensor and not x.__dict__ and not has_bits:
                return self._item(x.contiguous() if _is_wasteful(x) else x)
            data = x.detach().as_subclass(Tensor)
            if has_bits:
                data = data.resolve_conj().resolve_neg()
        return _rebuild_subclass, (kind, data, x.requires_grad, state_of(x))


def _has_memory(x: Any, kind: type) -> bool:
    if kind is Tensor:
        return True
    own = kind.__reduce_ex__ is not Tensor.__reduce_ex__ or "__reduce__" in kind.__dict__
    return not own and not _C._has_torch_dispatch(x)


def dumps(x: Any) -> tuple[bytes, list]:
    """(the pickle, the tensors and storages beside it)"""
    file, aside = io.BytesIO(), _Aside()
    _Pickler(file, aside).dump(x)
    return file.getvalue(), aside.items


def loads(data: bytes, items: list) -> Any:
    """What :func:`dumps` was given."""
    return pickle.loads(data, buffers=items)
