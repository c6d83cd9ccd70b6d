"""Reads pickles without running them: an interpreter of the opcodes that data needs.

Only types and functions on a list can be named, and each function checks its arguments. Nothing is
imported, no method of an object in the file is called, and there is no recursion. Every object made
is charged against a budget, so a small file cannot fill the memory; keys of dicts and sets are
plain values, so that hashing them is cheap.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

import taeda
from taeda import Tensor

from . import _rebuild
from ._names import DTYPES, STORAGE_DTYPES, StorageType

__all__ = ["SafeUnpickler"]

_PLAIN = (str, int, float, bytes, bool, type(None), complex)
# What objects cost, in bytes, as measured on CPython 3.11 and rounded up.
_COST_SMALL, _COST_CONTAINER, _COST_ENTRY, _COST_TENSOR = 48, 96, 24, 700
_COST_SLOT = 20  # a pointer in a list that grows by copying


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


def _set(values: Any = ()) -> set:
    if type(values) not in (list, tuple, set):
        raise UnpicklingError("load: set was given something else than a list")
    for value in values:
        _check_key(value)
    return set(values)


def _complex(real: Any = 0.0, imag: Any = 0.0) -> complex:
    if type(real) not in (int, float) or type(imag) not in (int, float):
        raise UnpicklingError("load: complex was given something else than numbers")
    return complex(real, imag)


def _ordered_dict(pairs: Any = ()) -> OrderedDict:
    result: OrderedDict = OrderedDict()
    if type(pairs) not in (list, tuple):
        raise UnpicklingError("load: OrderedDict was given something else than pairs")
    for pair in pairs:
        if type(pair) not in (list, tuple) or len(pair) != 2:
            raise UnpicklingError("load: OrderedDict was given something else than pairs")
        _check_key(pair[0])
        result[pair[0]] = pair[1]
    return result


def _counter(values: Any = None) -> Counter:
    if values is None:
        return Counter()
    if type(values) is not dict:
        raise UnpicklingError("load: Counter was given something else than a dict")
    return Counter(values)


def _layout(name: Any) -> Any:
    if name != "torch.strided":
        raise UnpicklingError("load: only strided tensors are supported")
    return taeda.strided


def _allowed() -> dict[str, Any]:
    """What a file may name: types and checked functions."""
    table: dict[str, Any] = {
        "collections.OrderedDict": _ordered_dict,
        "collections.Counter": _counter,
        "_codecs.encode": _encode,
        "builtins.bytearray": _bytearray,
        "builtins.set": _set,
        "builtins.complex": _complex,
        "__builtin__.bytearray": _bytearray,
        "__builtin__.set": _set,
        "__builtin__.complex": _complex,
        "torch.Size": _size,
        "torch.device": _device,
        "torch.nn.parameter.Parameter": _rebuild.parameter,
        "torch.serialization._get_layout": _layout,
        "torch.Tensor": Tensor,
    }
    table.update((f"torch._utils.{name}", f) for name, f in _rebuild.REBUILD.items())
    table["torch._tensor._rebuild_from_type_v2"] = _rebuild._rebuild_from_type_v2
    table.update((f"torch.{name}", dtype) for name, dtype in DTYPES.items())
    for name in STORAGE_DTYPES:
        table[f"torch.{name}"] = table[f"torch.storage.{name}"] = StorageType(name)
    for name in ("contiguous_format", "preserve_format", "channels_last", "channels_last_3d"):
        table[f"torch.{name}"] = getattr(taeda, name)
    table["torch.strided"] = taeda.strided
    return table


_table: dict[str, Any] | None = None
_TENSOR_MAKERS = (*_rebuild.REBUILD.values(), _rebuild.parameter)
_MARK = object()


def _is_one_of(value: Any, candidates: tuple) -> bool:
    """Identity, not equality: values from a file may define any ``__eq__`` or no hash."""
    return any(value is candidate for candidate in candidates)


def _name(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) else f"(a {type(kind).__name__})"


def _check_key(key: Any, depth: int = 0) -> None:
    """Dict keys are plain values or small tuples of them."""
    if type(key) in _PLAIN or isinstance(key, taeda.dtype):
        return
    if type(key) is tuple and depth < 2 and len(key) <= 64:
        for item in key:
            _check_key(item, depth + 1)
        return
    raise UnpicklingError(f"load: a dict or set has a key of type {type(key).__name__}")


class SafeUnpickler:
    """Reads one pickle from ``data`` at ``position``.

    Args:
        persistent_load: makes a storage from a persistent id.
        user_globals: further callables by their "module.name", called as they are.
        budget: bytes that the objects made may take, about.
    """

    def __init__(
        self,
        data: bytes,
        persistent_load: Callable[[Any], Any],
        user_globals: dict[str, Any],
        budget: int,
        position: int = 0,
        encoding: str = "utf-8",
    ) -> None:
        self.data = data
        self.position = position
        self.persistent_load = persistent_load
        self.user_globals = user_globals
        self.user_values = list(user_globals.values())
        self.budget = budget
        self.encoding = encoding
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def load(self) -> Any:
        """The object; ``position`` is behind its end afterwards. UnpicklingError if damaged."""
        try:
            while True:
                code = self._take(1)[0]
                if code == 0x2E:  # STOP
                    if len(self.stack) != 1 or self.stack[0] is _MARK:
                        raise UnpicklingError("load: the pickle does not end with one object")
                    return self.stack.pop()
                handler = _HANDLERS.get(code)
                if handler is None:
                    raise UnpicklingError(f"load: unsupported opcode {chr(code)!r}")
                handler(self)
        except (IndexError, KeyError, struct.error, UnicodeError, OverflowError) as error:
            raise UnpicklingError(f"load: the pickle is damaged: {error!r}") from None

    # --- reading ---

    def _take(self, count: int) -> bytes:
        end = self.position + count
        if end > len(self.data):
            raise UnpicklingError("load: the pickle is truncated")
        part = self.data[self.position : end]
        self.position = end
        return part

    def _number(self, count: int) -> int:
        return int.from_bytes(self._take(count), "little")

    def _line(self) -> str:
        end = self.data.find(b"\n", self.position, self.position + 4096)
        if end < 0:
            raise UnpicklingError("load: a name in the pickle has no end")
        line = self.data[self.position : end]
        self.position = end + 1
        return line.decode("utf-8")

    def _charge(self, cost: int) -> None:
        self.budget -= cost
        if self.budget < 0:
            raise UnpicklingError(
                "load: the file describes more objects than its size allows. If you trust it, "
                "use weights_only=False."
            )

    def _push(self, value: Any, cost: int = _COST_SMALL) -> None:
        self._charge(cost + _COST_SLOT)
        self.stack.append(value)

    def _pop(self) -> Any:
        value = self.stack.pop()
        if value is _MARK:
            raise UnpicklingError("load: the pickle takes a value where there is none")
        return value

    def _pop_to_mark(self) -> list[Any]:
        stack = self.stack
        at = len(stack) - 1
        while at >= 0 and stack[at] is not _MARK:
            at -= 1
        if at < 0:
            raise UnpicklingError("load: the pickle has no mark where one is needed")
        self._charge(8 * (len(stack) - at))
        items = stack[at + 1 :]
        del stack[at:]
        return items

    def _text(self, count: int) -> None:
        raw = self._take(count)
        self._push(raw.decode("utf-8", "surrogatepass"), 2 * _COST_SMALL + 4 * count)

    def _bytes(self, count: int) -> None:
        self._push(self._take(count), _COST_SMALL + count)

    def _byte_string(self, count: int) -> None:  # Python 2's str
        raw = self._take(count)
        value: Any = raw if self.encoding == "bytes" else raw.decode(self.encoding)
        self._push(value, 2 * _COST_SMALL + 4 * count)

    # --- containers ---

    def _append(self, values: list[Any]) -> None:
        target = self.stack[-1]
        self._charge(_COST_ENTRY * len(values))
        if type(target) is list:
            target.extend(values)
        elif type(target) is set:
            for value in values:
                _check_key(value)
            target.update(values)
        else:
            raise UnpicklingError(f"load: values are appended to a {type(target).__name__}")

    def _set_items(self, values: list[Any]) -> None:
        if len(values) % 2:
            raise UnpicklingError("load: a dict has a key without a value")
        target = self.stack[-1]
        if type(target) not in (dict, OrderedDict, Counter):
            raise UnpicklingError(f"load: items are set on a {type(target).__name__}")
        self._charge(5 * _COST_ENTRY * (len(values) // 2))
        for i in range(0, len(values), 2):
            _check_key(values[i])
            target[values[i]] = values[i + 1]

    def _tuple(self, items: list[Any]) -> None:
        self._push(tuple(items), _COST_SMALL + 8 * len(items))

    # --- names and calls ---

    def _find(self, module: str, name: str) -> None:
        global _table
        if _table is None:
            _table = _allowed()
        full = f"{module}.{name}"
        if full in self.user_globals:
            self._push(self.user_globals[full])
        elif full in _table:
            self._push(_table[full])
        else:
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {full} was not an allowed global by default. "
                f"Please use `torch.serialization.add_safe_globals([{name}])` or the "
                f"`torch.serialization.safe_globals([{name}])` context manager to allowlist this "
                "global if you trust this class/function."
            )

    def _is_user_value(self, value: Any) -> bool:
        return any(value is allowed for allowed in self.user_values)

    def _stack_global(self) -> None:
        name, module = self._pop(), self._pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("load: a name in the pickle is not text")
        self._find(module, name)

    def _reduce(self) -> None:
        args, function = self._pop(), self._pop()
        if type(args) is not tuple:
            raise UnpicklingError("load: a function in the pickle is called without a tuple")
        self._call(function, args)

    def _call(self, function: Any, args: tuple) -> None:
        if function is Tensor:
            raise UnpicklingError("load: torch.Tensor cannot be called by a file")
        if isinstance(function, (StorageType, taeda.dtype)) or not callable(function):
            raise UnpicklingError(f"load: {type(function).__name__} is called as a function")
        if function is _rebuild._rebuild_from_type_v2:
            self._check_subclass(args)
        makes_tensor = _is_one_of(function, _TENSOR_MAKERS)
        if not (makes_tensor or _is_one_of(function, _FUNCTIONS) or self._is_user_value(function)):
            raise UnpicklingError("load: the pickle calls something that it has not named")
        cost = _COST_CONTAINER
        if makes_tensor or function is _rebuild._rebuild_from_type_v2:
            cost = _COST_TENSOR
        else:
            for arg in args:  # copies of containers and text
                if isinstance(arg, (list, tuple, dict, set, str, bytes)):
                    cost += 4 * _COST_ENTRY * len(arg)
        self._charge(cost)
        try:
            self.stack.append(function(*args))
        except TypeError as error:
            raise UnpicklingError(f"load: wrong arguments in the pickle: {error}") from None

    def _check_subclass(self, args: tuple) -> None:
        """A tensor subclass is rebuilt only if the user has allowed it."""
        if len(args) != 4:
            raise UnpicklingError("load: a tensor subclass is described by four values")
        function, kind, inner, state = args
        if not _is_one_of(function, _TENSOR_MAKERS) or type(inner) is not tuple:
            raise UnpicklingError("load: a tensor subclass is made of something else than a tensor")
        if kind is not Tensor and not self._is_user_value(kind):
            raise UnpicklingError(f"load: the tensor subclass {_name(kind)} is not allowed")
        if isinstance(state, tuple):
            state = state[0] if state else {}
        if not isinstance(state, dict) or not all(type(k) is str for k in state):
            raise UnpicklingError("load: the attributes of a tensor are not a dict")

    def _new_object(self) -> None:
        args, kind = self._pop(), self._pop()
        if type(args) is not tuple:
            raise UnpicklingError("load: an object in the pickle is made without a tuple")
        if _is_one_of(kind, _FUNCTIONS):
            self._call(kind, args)
        elif self._is_user_value(kind) and isinstance(kind, type):
            self._charge(_COST_CONTAINER)
            self.stack.append(kind.__new__(kind, *args))
        else:
            raise UnpicklingError(f"load: objects of type {_name(kind)} are not made")

    def _build(self) -> None:
        state = self._pop()
        target = self.stack[-1]
        if type(target) is OrderedDict:
            if not isinstance(state, dict) or not all(type(k) is str for k in state):
                raise UnpicklingError("load: the attributes of an OrderedDict are not a dict")
            self._charge(_COST_CONTAINER + 5 * _COST_ENTRY * len(state))
            target.__dict__.update(state)
        elif any(type(target) is allowed for allowed in self.user_values):
            if hasattr(target, "__setstate__"):
                target.__setstate__(state)
            elif isinstance(state, tuple) and len(state) == 2:
                if state[0]:
                    target.__dict__.update(state[0])
                for key, value in (state[1] or {}).items():
                    setattr(target, key, value)
            else:
                target.__dict__.update(state)
        else:
            raise UnpicklingError(
                f"load: the state of a {type(target).__name__} cannot be set by a file"
            )

    def _memoize(self, key: int) -> None:
        self._charge(4 * _COST_ENTRY)
        self.memo[key] = self._top()

    def _top(self) -> Any:
        if self.stack[-1] is _MARK:
            raise UnpicklingError("load: the pickle refers to a mark")
        return self.stack[-1]

    def _persistent(self) -> None:
        self.stack.append(self.persistent_load(self._pop()))

    def _long(self, count: int) -> None:
        raw = self._take(count)
        self._push(int.from_bytes(raw, "little", signed=True), _COST_SMALL + 2 * count)

    def _protocol(self) -> None:
        version = self._number(1)
        if not 2 <= version <= 5:
            raise UnpicklingError(f"load: pickle protocol {version} is not supported")


_FUNCTIONS = (
    _device,
    _size,
    _encode,
    _bytearray,
    _set,
    _complex,
    _ordered_dict,
    _counter,
    _layout,
    _rebuild.parameter,
    _rebuild._rebuild_from_type_v2,
)


def _pop_mark_or_value(u: SafeUnpickler) -> None:
    u.stack.pop()


# opcode -> what it does (the names are those of the pickletools module)
_HANDLERS: dict[int, Callable[[SafeUnpickler], None]] = {
    0x80: SafeUnpickler._protocol,  # PROTO
    0x95: lambda u: (u._take(8), None)[1],  # FRAME
    ord("("): lambda u: u._push(_MARK, 0),  # MARK
    ord("0"): _pop_mark_or_value,  # POP
    ord("1"): lambda u: (u._pop_to_mark(), None)[1],  # POP_MARK
    ord("2"): lambda u: u._push(u._top(), 0),  # DUP
    ord("N"): lambda u: u._push(None, 0),
    0x88: lambda u: u._push(True, 0),  # NEWTRUE
    0x89: lambda u: u._push(False, 0),  # NEWFALSE
    ord("J"): lambda u: u._push(struct.unpack("<i", u._take(4))[0]),  # BININT
    ord("K"): lambda u: u._push(u._number(1), 0),  # BININT1
    ord("M"): lambda u: u._push(u._number(2)),  # BININT2
    0x8A: lambda u: u._long(u._number(1)),  # LONG1
    0x8B: lambda u: u._long(u._number(4)),  # LONG4
    ord("G"): lambda u: u._push(struct.unpack(">d", u._take(8))[0]),  # BINFLOAT
    ord("X"): lambda u: u._text(u._number(4)),  # BINUNICODE
    0x8C: lambda u: u._text(u._number(1)),  # SHORT_BINUNICODE
    0x8D: lambda u: u._text(u._number(8)),  # BINUNICODE8
    ord("T"): lambda u: u._byte_string(u._number(4)),  # BINSTRING
    ord("U"): lambda u: u._byte_string(u._number(1)),  # SHORT_BINSTRING
    ord("B"): lambda u: u._bytes(u._number(4)),  # BINBYTES
    ord("C"): lambda u: u._bytes(u._number(1)),  # SHORT_BINBYTES
    0x8E: lambda u: u._bytes(u._number(8)),  # BINBYTES8
    ord("]"): lambda u: u._push([], _COST_CONTAINER),  # EMPTY_LIST
    ord("}"): lambda u: u._push({}, _COST_CONTAINER),  # EMPTY_DICT
    0x8F: lambda u: u._push(set(), 3 * _COST_CONTAINER),  # EMPTY_SET
    ord(")"): lambda u: u._push((), 0),  # EMPTY_TUPLE
    0x85: lambda u: u._tuple([u._pop()]),  # TUPLE1
    0x86: lambda u: u._tuple([u._pop(), u._pop()][::-1]),  # TUPLE2
    0x87: lambda u: u._tuple([u._pop(), u._pop(), u._pop()][::-1]),  # TUPLE3
    ord("t"): lambda u: u._tuple(u._pop_to_mark()),  # TUPLE
    ord("a"): lambda u: u._append([u._pop()]),  # APPEND
    ord("e"): lambda u: u._append(u._pop_to_mark()),  # APPENDS
    0x90: lambda u: u._append(u._pop_to_mark()),  # ADDITEMS
    ord("s"): lambda u: u._set_items([u._pop(), u._pop()][::-1]),  # SETITEM
    ord("u"): lambda u: u._set_items(u._pop_to_mark()),  # SETITEMS
    ord("c"): lambda u: u._find(u._line(), u._line()),  # GLOBAL
    0x93: SafeUnpickler._stack_global,  # STACK_GLOBAL
    ord("R"): SafeUnpickler._reduce,  # REDUCE
    0x81: SafeUnpickler._new_object,  # NEWOBJ
    ord("b"): SafeUnpickler._build,  # BUILD
    ord("Q"): SafeUnpickler._persistent,  # BINPERSID
    ord("q"): lambda u: u._memoize(u._number(1)),  # BINPUT
    ord("r"): lambda u: u._memoize(u._number(4)),  # LONG_BINPUT
    0x94: lambda u: u._memoize(len(u.memo)),  # MEMOIZE
    ord("h"): lambda u: u._push(u.memo[u._number(1)], 0),  # BINGET
    ord("j"): lambda u: u._push(u.memo[u._number(4)], 0),  # LONG_BINGET
}
