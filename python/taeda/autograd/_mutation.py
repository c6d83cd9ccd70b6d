"""``allow_mutation_on_saved_tensors``: what backward needs is copied before it is overwritten.

Pack hooks keep a handle for each tensor that is saved, the same one for the same memory at the same
version; a dispatch mode sees the operators that write, and copies what has a handle and lies in
their memory. Handles belong to the graph: with its last one a tensor and its copy go.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import taeda
from taeda._C import Tensor
from taeda.autograd.graph import saved_tensors_hooks
from taeda.utils._python_dispatch import TorchDispatchMode


class _Handle:
    """Stands for a tensor among what the graph keeps."""


def _memory(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


class _Saved:
    """The tensors that the graph of one block keeps."""

    def __init__(self) -> None:
        self.original: Any = weakref.WeakKeyDictionary()  # handle -> tensor not written since
        self.cloned: Any = weakref.WeakKeyDictionary()  # handle -> copy of what it was
        self.tid_to_weakhandle: Any = weakref.WeakValueDictionary()
        self._tids: dict[int, set] = {}  # of a storage

    def pack(self, tensor: Tensor) -> _Handle:
        memory = _memory(tensor)
        layout = (tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset())
        tid = (memory, layout, tensor.requires_grad, tensor._version)
        handle = self.tid_to_weakhandle.get(tid)
        if handle is None:
            handle = self.tid_to_weakhandle[tid] = _Handle()
            self.original[handle] = tensor
            self._tids.setdefault(memory, set()).add(tid)
        return handle

    def unpack(self, handle: _Handle) -> Tensor:
        found = self.cloned.get(handle)
        found = self.original.get(handle) if found is None else found
        if found is None:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in "
                "which the graph was originally recorded."
            )
        return found

    def before_write(self, tensor: Tensor) -> None:
        """Copies what lies in the memory of `tensor`."""
        for tid in self._tids.pop(_memory(tensor), ()):
            handle = self.tid_to_weakhandle.get(tid)
            if handle is not None and handle in self.original:
                with taeda.no_grad():
                    self.cloned[handle] = self.original.pop(handle).detach().clone()

    def clear(self) -> None:
        for table in (self.original, self.cloned, self.tid_to_weakhandle, self._tids):
            table.clear()


def _written(func: Any, args: tuple, kwargs: dict) -> Iterator[Tensor]:
    """The tensors among the arguments that an operator writes."""
    for i, argument in enumerate(func._schema.arguments):
        if argument.alias_info is None or not argument.alias_info.is_write:
            continue
        given = args[i] if i < len(args) else kwargs.get(argument.name)
        given = given if isinstance(given, (list, tuple)) else [given]
        yield from (t for t in given if isinstance(t, Tensor) and not t._is_any_sparse())


class _CopyBeforeWrite(TorchDispatchMode):
    def __init__(self, saved: _Saved) -> None:
        super().__init__()
        self.saved = saved

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        for tensor in _written(func, args, kwargs):
            self.saved.before_write(tensor)
        return func(*args, **kwargs)


_active = False


@contextlib.contextmanager
def allow_mutation() -> Iterator[_Saved]:
    """See ``taeda.autograd.graph.allow_mutation_on_saved_tensors``."""
    global _active
    if _active:
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    _active = True
    saved = _Saved()
    try:
        with _CopyBeforeWrite(saved), saved_tensors_hooks(saved.pack, saved.unpack):
            yield saved
    finally:
        saved.clear()
        _active = False
