"""Pickles with the names that PyTorch uses, storages left out to be written beside.

Python's own pickler in its Python form, because names can be changed only there: what is
``taeda._utils`` here is ``torch._utils`` in the file.
"""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from struct import pack
from typing import Any, NamedTuple

import taeda
from taeda import Tensor
from taeda._tensor_state import state_of

from ._names import STORAGE_NAMES
from ._rebuild import check_layout

__all__ = ["dump"]


class _Global:
    """A name in the file. Only ever compared by identity, so each is made once."""

    def __init__(self, module: str, name: str) -> None:
        self.module = module
        self.name = name

    def __call__(self) -> None:  # the pickler asks that functions be callable
        raise TypeError(f"{self.module}.{self.name} is a name in a file")


_globals: dict[tuple[str, str], _Global] = {}


def _name(module: str, name: str) -> _Global:
    return _globals.setdefault((module, name), _Global(module, name))


class SavedStorage(NamedTuple):
    """A storage to be written, as the pickle describes it."""

    storage: Any
    nbytes: int
    dtype: Any  # None: bytes of no type


class _StorageReference:
    """Stands for a storage in what is pickled; becomes a persistent id."""

    def __init__(self, storage: Any, key: int, type_name: str, numel: int) -> None:
        self.storage = storage
        self.key = key
        self.type_name = type_name
        self.numel = numel


_TUPLES = (pickle.EMPTY_TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3)
_PythonPickler: Any = pickle._Pickler  # type: ignore[attr-defined]


class Pickler(_PythonPickler):
    """Collects the storages it meets in ``storages``, in order of their keys."""

    dispatch = _PythonPickler.dispatch.copy()

    def __init__(self, file: io.BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.storages: list[SavedStorage] = []
        self._keys: dict[int, int] = {}
        self._locations: dict[str, str] = {}  # each text as one object, which the memo needs

    # --- storages ---

    def _key(self, storage: Any, nbytes: int, dtype: Any) -> int:
        # The storage objects are kept, so an id stands for one storage all the while.
        key = self._keys.get(id(storage))
        if key is None:
            key = self._keys[id(storage)] = len(self.storages)
            self.storages.append(SavedStorage(storage, nbytes, dtype))
            return key
        saved = self.storages[key]
        if saved.dtype is None:
            self.storages[key] = saved._replace(dtype=dtype)
        elif dtype is not None and saved.dtype != dtype and nbytes:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different "
                "types"
            )
        if saved.nbytes != nbytes:
            raise RuntimeError("save: a storage changed its size while it was saved")
        return key

    def _reference(self, storage: Any, dtype: Any) -> _StorageReference:
        nbytes = storage.nbytes()
        key = self._key(storage, nbytes, dtype)
        return _StorageReference(storage, key, STORAGE_NAMES[dtype], nbytes // dtype.itemsize)

    def persistent_id(self, obj: Any) -> tuple | None:
        if isinstance(obj, taeda.storage.TypedStorage):
            obj = self._reference(obj._untyped_storage, obj.dtype)
        elif isinstance(obj, taeda.UntypedStorage):
            nbytes = obj.nbytes()
            obj = _StorageReference(obj, self._key(obj, nbytes, None), "UntypedStorage", nbytes)
        elif type(obj) is not _StorageReference:
            return None
        type_name = _name("torch", obj.type_name)
        if obj.type_name == "UntypedStorage":
            type_name = _name("torch.storage", obj.type_name)
        return ("storage", type_name, str(obj.key), str(obj.storage.device), obj.numel)

    # --- objects ---

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, taeda.Size):
            return _name("torch", "Size"), (tuple(obj),)
        if isinstance(obj, taeda.device):
            return _name("torch", "device"), (str(obj),)
        return NotImplemented

    def save_tensor(self, tensor: Tensor) -> None:
        """The opcodes of a plain tensor, written straight out: files of many small ones consist of
        these, and the general way through every part of the description takes three times as long.
        """
        function, args = self._reduce_plain(tensor)
        if len(args) != 6:
            return self.save_reduce(function, args, obj=tensor)
        reference, offset, size, stride, requires_grad, _ = args
        self._save_known(function)
        self.write(pickle.MARK)
        self._save_storage(reference)
        self._save_number(offset)
        self._save_numbers(size)
        self._save_numbers(stride)
        self.write(pickle.NEWTRUE if requires_grad else pickle.NEWFALSE)
        self._save_known(OrderedDict)  # of hooks
        self.write(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)
        self.memoize(tensor)

    dispatch[Tensor] = save_tensor

    def _save_storage(self, reference: _StorageReference) -> None:
        identity = self.persistent_id(reference)
        assert identity is not None  # that of a storage
        _, type_name, key, location, numel = identity
        self.write(pickle.MARK)
        self._save_known("storage")
        self._save_known(type_name)
        self.write(pickle.BINUNICODE + pack("<I", len(key)) + key.encode())
        self._save_known(self._locations.setdefault(location, location))
        self._save_number(numel)
        self.write(pickle.TUPLE + pickle.BINPERSID)

    def _save_known(self, obj: Any) -> None:
        """What has most likely been saved before."""
        known = self.memo.get(id(obj))
        if known is None:
            self.save(obj)
        else:
            self.write(self.get(known[0]))

    def _save_number(self, number: int) -> None:
        if number < 256:
            self.write(pickle.BININT1 + number.to_bytes(1, "little"))
        else:
            self.save_long(number)

    def _save_numbers(self, numbers: tuple[int, ...]) -> None:
        if len(numbers) > 3:
            self.write(pickle.MARK)
        for number in numbers:
            self._save_number(number)
        self.write(_TUPLES[len(numbers)] if len(numbers) <= 3 else pickle.TUPLE)

    def _reduce_tensor(self, tensor: Tensor) -> Any:
        kind = type(tensor)
        if kind is Tensor and not tensor.__dict__:
            return NotImplemented  # save_tensor()
        if kind is taeda.nn.Parameter:
            data = tensor.detach()
            attributes = dict(tensor.__dict__)
            args: tuple = (data, tensor.requires_grad, OrderedDict())
            if attributes:
                rebuild = _name("torch._utils", "_rebuild_parameter_with_state")
                return rebuild, (*args, attributes)
            return _name("torch._utils", "_rebuild_parameter"), args
        if kind.__reduce_ex__ is not Tensor.__reduce_ex__:
            return tensor.__reduce_ex__(self.proto)  # type: ignore[return-value]
        plain = tensor.as_subclass(Tensor)
        function, args = self._reduce_plain(plain)
        rebuild = _name("torch._tensor", "_rebuild_from_type_v2")
        return rebuild, (function, kind, args, state_of(tensor))

    def _reduce_plain(self, tensor: Tensor) -> tuple:
        size, stride = tuple(tensor.size()), tuple(tensor.stride())
        if tensor.grad_fn is not None:
            tensor = tensor.detach()
            requires_grad = True
        else:
            requires_grad = tensor.requires_grad
        if tensor.device.type == "meta":
            rebuild = _name("torch._utils", "_rebuild_meta_tensor_no_storage")
            return rebuild, (tensor.dtype, size, stride, requires_grad)
        storage = self._reference(tensor.untyped_storage(), tensor.dtype)
        offset, itemsize = tensor.storage_offset(), tensor.dtype.itemsize
        check_layout(storage.numel * itemsize, itemsize, offset, size, stride, "save")
        return _name("torch._utils", "_rebuild_tensor_v2"), (
            storage,
            offset,
            size,
            stride,
            requires_grad,
            OrderedDict(),
        )

    # --- names ---

    def save_foreign_global(self, obj: _Global) -> None:
        self._write_global(obj.module, obj.name)
        self.memoize(obj)

    dispatch[_Global] = save_foreign_global

    def save_dtype(self, obj: Any) -> None:
        self._write_global("torch", str(obj).partition(".")[2])
        self.memoize(obj)

    dispatch[taeda.dtype] = save_dtype

    def _write_global(self, module: str, name: str) -> None:
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + module.encode() + b"\n" + name.encode() + b"\n")

    def save_global(self, obj: Any, name: str | None = None) -> None:
        module = getattr(obj, "__module__", None) or ""
        if module != "taeda" and not module.startswith("taeda."):
            super().save_global(obj, name)
            return
        self._write_global("torch" + module.removeprefix("taeda"), name or obj.__qualname__)
        self.memoize(obj)

    def save_type(self, obj: Any) -> None:
        if obj in (type(None), type(NotImplemented), type(...)):
            super().save_type(obj)
        else:
            self.save_global(obj)

    dispatch[type(pickle.dumps)] = save_global  # builtin functions
    dispatch[type(lambda: None)] = save_global
    dispatch[type] = save_type


def dump(obj: Any, protocol: int) -> tuple[bytes, list[SavedStorage]]:
    """(the pickle, the storages it refers to by number)"""
    file = io.BytesIO()
    pickler = Pickler(file, protocol)
    pickler.dump(obj)
    return file.getvalue(), pickler.storages
