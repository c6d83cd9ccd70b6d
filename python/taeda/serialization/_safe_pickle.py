"""Reads pickles without running them: the rules of what a file may name, call and fill.

The interpreter of the opcodes is ``_C._unpickle``. Only types and functions on a list can be named,
and each function checks its arguments. Nothing is imported and no method of an object in the file
is called. The memory and the time that a file can take are bounded by its size: by what honest
files of that size need at most.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from copyreg import _reconstructor  # type: ignore[attr-defined]
from pickle import UnpicklingError
from typing import Any

import taeda
from taeda import _C, Tensor
from taeda._tensor import _rebuild_from_type_v2
from taeda._tensor_state import sets_state

from . import _rebuild
from ._names import DTYPES, STORAGE_DTYPES, StorageType

__all__ = ["NotAllowed", "load_safely"]

# What objects may take for each byte of their pickle: the most is an empty set, 270 bytes with its
# places in a list and in the memo for two bytes of the pickle; tensors take less than 30.
_BYTES_A_BYTE, _FREE_BYTES = 140, 64 << 20
# And the nanoseconds of work, about: the most is a tensor, 13,000 for 42 bytes.
_EFFORT_A_BYTE, _FREE_EFFORT = 400, 500_000_000
# Pickles from here on are held against the memory that is there.
_LARGE_PICKLE = 256 << 10


class NotAllowed(UnpicklingError):
    """The file names something that only the user can allow."""


def _device(*args: Any) -> Any:
    if not args or len(args) > 2 or type(args[0]) is not str:
        raise UnpicklingError("load: torch.device was given something else than a name")
    return taeda.device(*args)


def _size(values: Any = ()) -> Any:
    if not isinstance(values, (tuple, list)) or not all(type(v) is int for v in values):
        raise UnpicklingError("load: torch.Size was given something else than numbers")
    return taeda.Size(values)


def _encode(text: Any, encoding: Any = "utf-8") -> bytes:
    # How protocol 2 writes bytes.
    if type(text) is not str or encoding not in ("latin1", "latin-1", "utf-8", "ascii"):
        raise UnpicklingError("load: _codecs.encode was given something else than text")
    return text.encode(encoding)


def _bytearray(*args: Any) -> bytearray:
    if len(args) == 0:
        return bytearray()
    if len(args) == 2:
        return bytearray(_encode(*args))
    if len(args) == 1 and type(args[0]) is bytes:
        return bytearray(args[0])
    raise UnpicklingError("load: bytearray was given something else than bytes")


def _bytes() -> bytes:
    # How protocol 2 writes b"", and no other.
    return b""


def _complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise UnpicklingError("load: complex was given something else than numbers")
    return complex(real, imag)


# What a class may be derived from whose objects protocols 0 and 1 describe; long and unicode are
# Python 2's. No file can call them.
_BASES: dict[str, type] = {kind.__name__: kind for kind in (object, dict, list, tuple, float)}
_BASES.update(int=int, long=int, str=str, unicode=str)


def _layout(name: Any) -> Any:
    names = ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
    if name not in [f"torch.{known}" for known in names]:
        raise UnpicklingError("load: a layout's name is not one of torch.strided, sparse_coo, ...")
    return getattr(taeda, name.partition(".")[2])


def _jagged(parts: Any) -> Tensor:
    from ._nested import jagged

    return jagged(parts)


def _strided(*parts: Any) -> Tensor:
    from ._nested import strided

    if len(parts) != 4:
        raise UnpicklingError("load: a nested tensor is described by four tensors")
    return strided(*parts)


def _allowed() -> dict[str, Any]:
    """What a file may name: types and checked functions."""
    table: dict[str, Any] = {
        "collections.OrderedDict": OrderedDict,
        "collections.Counter": Counter,
        "_codecs.encode": _encode,
        "torch.Size": _size,
        "torch.device": _device,
        "torch.nn.parameter.Parameter": _rebuild.parameter,
        "torch.serialization._get_layout": _layout,
        "torch.Tensor": Tensor,
    }
    table["copyreg._reconstructor"] = table["copy_reg._reconstructor"] = _reconstructor
    for module in ("builtins", "__builtin__"):
        table.update((f"{module}.{name}", kind) for name, kind in _BASES.items())
        table[f"{module}.bytes"] = _bytes
        table[f"{module}.bytearray"] = _bytearray
        table[f"{module}.complex"] = _complex
        table[f"{module}.set"] = set
        table[f"{module}.frozenset"] = frozenset
    table.update((f"torch._utils.{name}", f) for name, f in _rebuild.REBUILD.items())
    table["torch._tensor._rebuild_from_type_v2"] = _rebuild_from_type_v2
    table["torch.nested._internal.nested_tensor._rebuild_njt"] = _jagged
    table["torch._utils._rebuild_nested_tensor"] = _strided
    table.update((f"torch.{name}", dtype) for name, dtype in DTYPES.items())
    for name in STORAGE_DTYPES:
        table[f"torch.{name}"] = table[f"torch.storage.{name}"] = StorageType(name)
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"):
        table[f"torch.{name}"] = getattr(taeda, name)
    table["torch.strided"] = taeda.strided
    return table


_table: dict[str, Any] | None = None
_TENSOR_MAKERS: tuple[Callable, ...] = (*_rebuild.REBUILD.values(), _rebuild.parameter)
# Checked functions that a file may call, and what that costs at most: (bytes, nanoseconds).
_COSTS: dict[Callable, tuple[int, int]] = {
    **dict.fromkeys((_encode, _bytes, _bytearray, _complex, _layout), (100, 1000)),
    **dict.fromkeys((_size, _device), (150, 1200)),
    **dict.fromkeys(_TENSOR_MAKERS, (1500, 10_000)),
    **dict.fromkeys((_jagged, _strided), (5000, 100_000)),
}


def _is_one_of(value: Any, candidates: Any) -> bool:
    """Identity, not equality: values from a file may define any ``__eq__`` or no hash."""
    return any(value is candidate for candidate in candidates)


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else f"(a {type(kind).__name__})"


class _Rules:
    """What ``_C._unpickle`` asks about everything that is no plain value or container.

    Args:
        user_globals: further callables by their "module.name", called as they are.
        over_memory: raised when the objects take more memory than they may.
    """

    error = UnpicklingError
    counter = Counter
    costs = _COSTS

    def __init__(self, user_globals: dict[str, Any], over_memory: Exception) -> None:
        global _table
        if _table is None:
            _table = _allowed()
        self.names = {**_table, **user_globals}
        self.user_values = list(user_globals.values())
        self.over_memory = over_memory

    def find(self, module: str, name: str) -> Any:
        """GLOBAL"""
        full = f"{module}.{name}"
        if full not in self.names:
            raise NotAllowed(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
                f"Please use `torch.serialization.add_safe_globals([{name}])` or the "
                f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this "
                "global if you trust this class/function."
            )
        return self.names[full]

    def call(self, function: Any, args: tuple) -> Any:
        """REDUCE with a function that is not in ``costs``."""
        if function is _rebuild_from_type_v2:
            self._check_subclass(args)
        elif function is _reconstructor:
            self._check_reconstructed(args)
        elif function is Tensor:
            raise UnpicklingError("load: torch.Tensor cannot be called by a file")
        elif isinstance(function, (StorageType, taeda.dtype)) or not callable(function):
            raise UnpicklingError(f"load: {type(function).__name__} is called as a function")
        elif not _is_one_of(function, self.user_values):
            raise UnpicklingError("load: the pickle calls something that it has not named")
        return function(*args)

    def _check_subclass(self, args: tuple) -> None:
        """A tensor subclass is rebuilt only if the user has allowed it."""
        if len(args) != 4:
            raise UnpicklingError("load: a tensor subclass is described by four values")
        function, kind, inner, state = args
        if not _is_one_of(function, _TENSOR_MAKERS) or type(inner) is not tuple:
            raise UnpicklingError("load: a tensor subclass is made of something else than a tensor")
        if kind is not Tensor and not _is_one_of(kind, self.user_values):
            raise UnpicklingError(f"load: the tensor subclass {_name(kind)} is not allowed")
        if kind is not Tensor and sets_state(kind):
            return
        parts = state if isinstance(state, tuple) else (state,)
        if (isinstance(state, tuple) and len(state) != 2) or not all(
            part is None or (isinstance(part, dict) and all(type(k) is str for k in part))
            for part in parts
        ):
            raise UnpicklingError("load: the attributes of a tensor are not a dict")

    def _check_class(self, kind: Any) -> None:
        if not _is_one_of(kind, self.user_values) or not isinstance(kind, type):
            raise UnpicklingError(f"load: objects of type {_name(kind)} are not made")

    def _check_reconstructed(self, args: tuple) -> None:
        """An object in protocol 0 or 1: of its class, the plain type below it, and that's value."""
        if len(args) != 3:
            raise UnpicklingError("load: an object of protocol 0 is described by three values")
        self._check_class(args[0])
        if not _is_one_of(args[1], _BASES.values()) or not issubclass(args[0], args[1]):
            raise UnpicklingError(f"load: {_name(args[0])} is not derived from {_name(args[1])}")

    def make(self, kind: Any, args: Any, keywords: Any = None) -> Any:
        """NEWOBJ and NEWOBJ_EX"""
        self._check_class(kind)
        keywords = {} if keywords is None else keywords
        if type(args) is not tuple or type(keywords) is not dict:
            raise UnpicklingError("load: an object is made of something else than arguments")
        if not all(type(key) is str for key in keywords):
            raise UnpicklingError("load: the name of an argument is not text")
        return kind.__new__(kind, *args, **keywords)

    def build(self, target: Any, state: Any) -> None:
        """BUILD"""
        if type(target) is OrderedDict:
            if not isinstance(state, dict) or not all(type(k) is str for k in state):
                raise UnpicklingError("load: the attributes of an OrderedDict are not a dict")
            target.__dict__.update(state)
        elif not _is_one_of(type(target), self.user_values):
            raise UnpicklingError(
                f"load: the state of a {type(target).__name__} cannot be set by a file"
            )
        elif hasattr(target, "__setstate__"):
            target.__setstate__(state)
        elif isinstance(state, tuple) and len(state) == 2:
            if state[0]:
                target.__dict__.update(state[0])
            for key, value in (state[1] or {}).items():
                setattr(target, key, value)
        else:
            target.__dict__.update(state)


def load_safely(
    data: bytes,
    position: int,
    persistent_load: Callable[[Any], Any],
    user_globals: dict[str, Any],
    file_size: int,
    encoding: str = "utf-8",
) -> tuple[Any, int]:
    """(the object of the pickle in ``data`` at ``position``, where it ends)

    UnpicklingError if it is damaged or means no good, OutOfMemoryError if the memory is too small.
    """
    size = min(len(data), file_size)
    memory = _BYTES_A_BYTE * size + _FREE_BYTES
    over_memory: Exception = UnpicklingError(
        "load: the pickle describes more objects than an honest one of its size can"
    )
    if size >= _LARGE_PICKLE:
        available = _C._available_memory()
        if available < memory:
            memory = available
            over_memory = taeda.OutOfMemoryError(
                f"load: the objects in the file need more than the {available} bytes of memory "
                "that are available"
            )
    rules = _Rules(user_globals, over_memory)
    effort = _EFFORT_A_BYTE * size + _FREE_EFFORT
    try:
        return _C._unpickle(data, position, rules, persistent_load, memory, effort, encoding)
    except (IndexError, KeyError, UnicodeError, OverflowError) as error:
        raise UnpicklingError(f"load: the pickle is damaged: {error!r}") from None
