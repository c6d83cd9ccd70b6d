"""Pickles with the names that PyTorch uses, storages left out to be written beside.

``_C._pickle`` writes plain values, containers and tensors. The rules here describe every other
object to it, and say its name in a file: what is ``taeda._utils`` here is ``torch._utils`` there.
"""

from __future__ import annotations

import codecs
import copyreg
import functools
import importlib
import pickle
from _compat_pickle import REVERSE_IMPORT_MAPPING, REVERSE_NAME_MAPPING
from collections import OrderedDict
from types import BuiltinFunctionType, FunctionType
from typing import Any, NamedTuple

import taeda
from taeda import _C, Tensor
from taeda._portable import is_wrapper
from taeda._tensor_state import get_tensor_metadata, state_of

from ._names import STORAGE_NAMES
from ._rebuild import check_layout

__all__ = ["dump"]


class Name(NamedTuple):
    """A class or function by its name in the file."""

    module: str
    name: str


class StorageReference(NamedTuple):
    """A storage, and the dtype that the file says of it; None: bytes of no type."""

    storage: Any
    dtype: Any


class Reduction(NamedTuple):
    """How an object is made again: the parts that are written first, the opcodes that make it of
    them, and what it is filled with."""

    parts: tuple
    opcodes: bytes
    state: Any = None
    items: Any = None
    pairs: Any = None
    setter: Any = None


class SavedStorage(NamedTuple):
    """A storage to be written, as the pickle describes it."""

    storage: Any
    nbytes: int
    dtype: Any  # None: bytes of no type


@functools.cache  # the pickle knows by identity what it has written before
def _name(module: str, name: str) -> Name:
    return Name(module, name)


def _storage_names() -> dict[Any, Name]:
    names: dict[Any, Name] = {d: _name("torch", name) for d, name in STORAGE_NAMES.items()}
    names[None] = _name("torch.storage", "UntypedStorage")
    return names


_SINGLETON_TYPES = (type(None), type(NotImplemented), type(...))


class _Rules:
    """What ``_C._pickle`` asks about all that it does not write itself."""

    name = Name
    storage = StorageReference
    rebuild_tensor = _name("torch._utils", "_rebuild_tensor_v2")
    ordered_dict = OrderedDict
    storage_names = _storage_names()

    def __init__(self, protocol: int) -> None:
        self.protocol = protocol

    def describe(self, obj: Any) -> Name | StorageReference | Reduction:
        kind = type(obj)
        if isinstance(obj, Tensor):
            return self._tensor(obj)
        if isinstance(obj, taeda.storage.TypedStorage):
            return StorageReference(obj._untyped_storage, obj._dtype)
        if isinstance(obj, type):
            if obj in _SINGLETON_TYPES:
                return _call(type, {type(None): None, type(...): ...}.get(obj, NotImplemented))
            return self._global(obj)
        if kind in (FunctionType, BuiltinFunctionType):
            return self._global(obj)
        if kind is taeda.dtype:
            return _name("torch", str(obj).partition(".")[2])
        if kind is taeda.layout:
            return _call(_name("torch.serialization", "_get_layout"), str(obj))
        if kind is taeda.Size:
            return _call(_name("torch", "Size"), tuple(obj))
        if kind is taeda.device:
            return _call(_name("torch", "device"), str(obj))
        if kind in (bytes, bytearray, set, frozenset):
            return self._old_form(obj)
        return self._reduced(obj)

    def _old_form(self, obj: Any) -> Reduction:
        """A plain value for which the protocol has no opcode yet."""
        kind = type(obj)
        if kind is bytes:
            return _call(codecs.encode, str(obj, "latin1"), "latin1")
        if kind is bytearray:
            return _call(kind, bytes(obj)) if obj else _call(kind)
        return _call(kind, list(obj))

    # --- tensors ---

    def _tensor(self, tensor: Tensor) -> Reduction:
        kind = type(tensor)
        if kind is taeda.nn.Parameter:
            args: tuple = (tensor.detach(), tensor.requires_grad, OrderedDict())
            if tensor.__dict__:
                rebuild = _name("torch._utils", "_rebuild_parameter_with_state")
                return _call(rebuild, *args, dict(tensor.__dict__))
            return _call(_name("torch._utils", "_rebuild_parameter"), *args)
        if kind.__reduce_ex__ is not Tensor.__reduce_ex__:
            return self._reduced(tensor)
        if is_wrapper(tensor):
            function = _name("torch._utils", "_rebuild_wrapper_subclass")
            args = (
                kind, tensor.dtype, tuple(tensor.size()), tuple(tensor.stride()),
                tensor.storage_offset(), tensor.layout, tensor.device, tensor.requires_grad,
            )  # fmt: skip
        else:
            function, args = self._plain(tensor.as_subclass(Tensor))
        if kind is Tensor and not tensor.__dict__:
            return _call(function, *args)
        rebuild = _name("torch._tensor", "_rebuild_from_type_v2")
        return _call(rebuild, function, kind, args, state_of(tensor))

    def _plain(self, tensor: Tensor) -> tuple[Name, tuple]:
        """The function that rebuilds a tensor without attributes, and its arguments."""
        if tensor.layout is not taeda.strided:
            from taeda._portable import sparse_parts

            return _name("torch._utils", "_rebuild_sparse_tensor"), sparse_parts(tensor)
        size, stride = tuple(tensor.size()), tuple(tensor.stride())
        if tensor.device.type == "meta":
            rebuild = _name("torch._utils", "_rebuild_meta_tensor_no_storage")
            return rebuild, (tensor.dtype, size, stride, tensor.requires_grad)
        storage, offset, dtype = tensor.untyped_storage(), tensor.storage_offset(), tensor.dtype
        check_layout(storage.nbytes(), dtype.itemsize, offset, size, stride, "save")
        layout: tuple = (offset, size, stride, tensor.requires_grad, OrderedDict())
        if dtype._is_storage_type:  # no storage class is named after it
            return _name("torch._utils", "_rebuild_tensor_v3"), (storage, *layout, dtype)
        if metadata := get_tensor_metadata(tensor):
            layout = (*layout, metadata)
        typed = taeda.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)
        return self.rebuild_tensor, (typed, *layout)

    # --- names ---

    def _global(self, obj: Any, name: str | None = None) -> Any:
        """A class or function that whoever reads the file can import."""
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module = getattr(obj, "__module__", None) or ""
        package, dot, inside = module.partition(".")
        if package in ("taeda", "torch"):
            return Name(f"torch{dot}{inside}", name)
        module = pickle.whichmodule(obj, name)  # type: ignore[attr-defined]
        try:
            parent: Any = importlib.import_module(module)
            *outer, last = name.split(".")
            parent = functools.reduce(getattr, outer, parent)
            found = getattr(parent, last) if "<locals>" not in outer else None
        except (ImportError, AttributeError, KeyError):
            found = None
        if found is not obj:
            raise pickle.PicklingError(
                f"Can't pickle {obj!r}: it's not found as {module}.{name}, or it is another object"
            )
        if self.protocol >= 4:
            return Name(module, name)
        if outer:
            return _call(getattr, parent, last)
        if self.protocol < 3:  # what Python 2 calls them
            module, name = REVERSE_NAME_MAPPING.get((module, name), (module, name))
            module = REVERSE_IMPORT_MAPPING.get(module, module)
        return Name(module, name)

    # --- everything else ---

    def _reduced(self, obj: Any) -> Any:
        """What the class of an object says about it, by ``copyreg`` or ``__reduce_ex__``."""
        reduce = copyreg.dispatch_table.get(type(obj))
        value = reduce(obj) if reduce else obj.__reduce_ex__(self.protocol)
        if isinstance(value, str):
            return self._global(obj, value)
        if not isinstance(value, tuple) or not 2 <= len(value) <= 6:
            raise pickle.PicklingError(
                f"__reduce__ of {type(obj).__name__} must return a string or a tuple of 2 to 6 "
                f"values, got {type(value).__name__}"
            )
        function, args, state, *rest = (*value, None)[: max(3, len(value))]
        if not isinstance(args, tuple):
            raise pickle.PicklingError(
                f"second item of the tuple returned by __reduce__ of {type(obj).__name__} must be "
                f"a tuple, got {type(args).__name__}"
            )
        return Reduction(*self._maker(function, args), state, *rest)

    def _maker(self, function: Any, args: tuple) -> tuple[tuple, bytes]:
        """(the parts, the opcodes) of a call, or of an object made by its class's ``__new__``."""
        name = getattr(function, "__name__", "") if self.protocol >= 2 else ""
        if name == "__newobj__":
            return (args[0], args[1:]), pickle.NEWOBJ
        if name == "__newobj_ex__":
            if self.protocol >= 4:
                return args, pickle.NEWOBJ_EX
            kind, positional, keywords = args
            made = functools.partial(kind.__new__, kind, *positional, **keywords)
            return (made, ()), pickle.REDUCE
        if not callable(function) and type(function) is not Name:
            raise pickle.PicklingError(
                "first item of the tuple returned by __reduce__ must be callable, "
                f"got {type(function).__name__}"
            )
        return (function, args), pickle.REDUCE


def _call(function: Any, *args: Any) -> Reduction:
    return Reduction((function, args), pickle.REDUCE)


def dump(obj: Any, protocol: int) -> tuple[bytes, list[SavedStorage]]:
    """(the pickle, the storages it refers to by number)"""
    if protocol < 0:
        protocol = pickle.HIGHEST_PROTOCOL
    data, storages = _C._pickle(obj, protocol, _Rules(protocol))
    return data, [SavedStorage(*storage) for storage in storages]
