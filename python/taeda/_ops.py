"""torch.ops: every operator by name and overload, with its schema.

``torch.ops.aten.add`` is a packet of overloads, ``torch.ops.aten.add.Tensor`` one of them. All are
looked up when they are first named; the core keeps what is known of them as constant data.
"""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from taeda import _C

__all__ = ["OpOverload", "OpOverloadPacket", "ops"]


class AliasInfo:
    """What the schema says of an argument's memory: who shares it and whether it is written."""

    def __init__(self, letters: str, is_write: bool):
        self.before_set = self.after_set = set(letters.split("|"))
        self.is_write = is_write

    def __repr__(self) -> str:
        return f"AliasInfo({sorted(self.before_set)}, is_write={self.is_write})"


def _in_python(text: str) -> str:
    """A type of the schema language as annotations have it: "int[2]?" is "Optional[List[int]]"."""
    if text.endswith("?"):
        return f"Optional[{_in_python(text[:-1])}]"
    if text.endswith("]"):
        return f"List[{_in_python(text[: text.rindex('[')])}]"
    return {"Scalar": "number"}.get(text, text)


class Type:
    """The type of an argument, named as in annotations: "Optional[List[int]]"."""

    def __init__(self, text: str):
        self._text = self.annotation_str = text

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self._text)


class Argument:
    """One argument or result of a schema."""

    def __init__(self, row: tuple):
        self.name, kind, self._has_default, self.default_value, self.kwarg_only = row[:5]
        self.real_type = Type(_in_python(kind))
        #: as which it is passed: dtypes and the like are ints in PyTorch's schemas
        self.type = Type(
            re.sub(r"\b(ScalarType|Layout|MemoryFormat)\b", "int", str(self.real_type))
        )
        #: of int[N]: how many equal ones a single number stands for
        self.N = (
            int(n) if (n := kind.rstrip("?").rpartition("[")[2].rstrip("]")).isdigit() else None
        )
        self.alias_info = AliasInfo(row[5], row[6]) if row[5] else None

    def has_default_value(self) -> bool:
        """Whether a call may leave it out."""
        return self._has_default

    @property
    def is_write(self) -> bool:
        """Whether the operator changes its elements."""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        """Whether it is a tensor to write, given by name."""
        return self.kwarg_only and self.is_write

    def __repr__(self) -> str:
        return f"Argument(name={self.name!r}, type={self.type})"


class FunctionSchema:
    """An operator's signature."""

    def __init__(self, name: str, overload: str, arguments: list, results: list, text: str):
        self.name, self.overload_name, self._text = name, overload, text
        self.arguments = [Argument(row) for row in arguments]
        self.returns = [Argument(row) for row in results]

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is written."""
        return any(argument.is_write for argument in self.arguments)

    def _is_view_op(self) -> bool:
        """Whether a result shares memory with an argument that is not written."""
        aliases = [a.alias_info for a in self.arguments if a.alias_info is not None]
        return bool(aliases) and not any(alias.is_write for alias in aliases)

    def __str__(self) -> str:
        return self._text

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(self._text)


def parse_schema(text: str) -> FunctionSchema:
    """Reads a schema; RuntimeError where it cannot be read."""
    return FunctionSchema(*_C._parse_schema(text))


class OpOverload(_C._OperatorBase):
    """One overload of an operator: call it with the arguments of its schema."""

    _cached: FunctionSchema | None = None

    @property
    def _schema(self) -> FunctionSchema:
        if self._cached is None:
            self._cached = FunctionSchema(
                self._operator_name,
                self._overload,
                self._arguments,
                self._results,
                self._schema_text,
            )
        return self._cached

    @property
    def namespace(self) -> str:
        """ "aten" """
        return self._operator_name.partition("::")[0]

    @property
    def _opname(self) -> str:
        return self._operator_name.partition("::")[2]

    @property
    def _overloadname(self) -> str:
        return self._overload or "default"

    @property
    def __name__(self) -> str:
        return f"{self._opname}.{self._overloadname}"

    @property
    def overloadpacket(self) -> OpOverloadPacket:
        """All overloads of the name."""
        return getattr(getattr(ops, self.namespace), self._opname)

    _overloadpacket = overloadpacket

    @property
    def tags(self) -> list:
        """What is known of the operator, as torch.Tag; of a program's own, what it said."""
        from taeda._library import tags

        return tags.of(self)

    @property
    def is_view(self) -> bool:
        """Whether a result shares memory with an argument that is not written."""
        return self._schema._is_view_op()

    @property
    def _name(self) -> str:
        return self.name()

    @property
    def op(self) -> OpOverload:
        """The overload itself."""
        return self

    def name(self) -> str:
        """ "aten::add.Tensor" """
        dot = f".{self._overload}" if self._overload else ""
        return self._operator_name + dot

    def redispatch(self, keyset: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Goes on with a call that had these keys: what a kernel does that was given them, with a
        part taken out (`Library.impl(..., with_keyset=True)`)."""
        from taeda._dispatch_keys import to_bits

        return self._redispatch(to_bits(keyset), args, kwargs)

    @property
    def py_kernels(self) -> dict[Any, Callable]:
        """What `py_impl` has registered, by key."""
        return self.__dict__.setdefault("_py_kernels", {})

    def py_impl(self, k: Any) -> Callable[[Callable], Callable]:
        """Decorator: keeps a kernel for a dispatch key, or a class of modes, in `py_kernels`.

        Calls do not look there, nor do PyTorch's outside of its Python dispatcher."""

        def register(fn: Callable) -> Callable:
            if k in self.py_kernels:
                raise RuntimeError(
                    f"Trying to override a python impl for {k} on operator {self.name()}"
                )
            self.py_kernels[k] = fn
            return fn

        return register

    def has_kernel_for_dispatch_key(self, key: Any) -> bool:
        """Whether the operator answers calls with this key by itself."""
        from taeda._dispatch_keys import has_kernel

        return key in self.py_kernels or has_kernel(self, key)

    def has_kernel_for_any_dispatch_key(self, keys: Any) -> bool:
        """Whether it does for one of the keys."""
        return any(self.has_kernel_for_dispatch_key(key) for key in getattr(keys, "_keys", keys))

    def decompose(self, *args: Any, **kwargs: Any) -> Any:
        """NotImplemented for an operator with a kernel; others run what they are made of."""
        if self._is_dispatched:
            return NotImplemented
        return self._redispatch_below("Python", args, kwargs)

    def __str__(self) -> str:
        return f"{self.namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self) -> str:
        return (
            f"<OpOverload(op='{self.namespace}.{self._opname}', overload='{self._overloadname}')>"
        )

    def __deepcopy__(self, memo: dict | None = None) -> OpOverload:
        return self

    def __reduce__(self) -> tuple:
        return _find, (self._operator_name, self._overload)


_C._set_overload_type(OpOverload)


def _find(name: str, overload: str) -> OpOverload:
    return _C._operator(name, overload)


class OpOverloadPacket:
    """The overloads of one name. A call takes the first whose schema the arguments fit."""

    def __init__(self, namespace: str, name: str):
        self._qualified_op_name = f"{namespace}::{name}"
        self._namespace, self.__name__ = namespace, name
        self.__module__ = f"torch._ops.{namespace}"

    def overloads(self) -> list[str]:
        """The overloads' names, "default" for the one without."""
        return [op._overloadname for op in _C._operators(self._qualified_op_name)]

    @property
    def op(self) -> OpOverloadPacket:
        """The packet itself."""
        return self

    def __getattr__(self, key: str) -> OpOverload:
        if key.startswith("__"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{key}'")
        overload = "" if key == "default" else key
        found = _C._operator(self._qualified_op_name, overload)
        if found is None and self._define():
            found = _C._operator(self._qualified_op_name, overload)
        if found is None:
            raise AttributeError(
                f"The underlying op of '{self}' has no overload name '{key}'"
            ) from None
        # An operator that is registered may be taken back.
        if not found._is_registered:
            setattr(self, key, found)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.overloads())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.overloads()]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if _C._stands_for_tensor(args, kwargs):
            relevant = (*args, *kwargs.values())
            return _C._handle_torch_function(self, relevant, *args, **kwargs)
        failures: list[str] = []
        candidates = _C._operators(self._qualified_op_name)
        found = _first_that_takes(candidates, args, kwargs, failures)
        if found is None and self._define():
            failures = []
            candidates = _C._operators(self._qualified_op_name)
            found = _first_that_takes(candidates, args, kwargs, failures)
        if found is not None or len(candidates) == 1:
            return (found or candidates[0])(*args, **kwargs)
        raise RuntimeError(
            "Overloaded torch operator invoked from Python failed to match any schema:\n"
            + "\n\n".join(failures)
        )

    def _define(self) -> bool:
        """Whether there are more overloads once those that only PyTorch has are defined."""
        before = len(_C._operators(self._qualified_op_name))
        getattr(ops, self._namespace)._define(self.__name__)
        return len(_C._operators(self._qualified_op_name)) > before

    def __str__(self) -> str:
        return f"{self._namespace}.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='{self}')>"

    def __deepcopy__(self, memo: dict | None = None) -> OpOverloadPacket:
        return self

    def __reduce__(self) -> tuple:
        return _packet, (self._namespace, self.__name__)


def _first_that_takes(
    candidates: Sequence[OpOverload], args: tuple, kwargs: dict, failures: list[str]
) -> OpOverload | None:
    """The first overload that the arguments fit; why the others do not goes to `failures`."""
    for op in candidates:
        try:
            _C._check_arguments(op, args, kwargs)
        except RuntimeError as error:
            failures.append(str(error))
        else:
            return op
    return None


def _packet(namespace: str, name: str) -> OpOverloadPacket:
    return getattr(getattr(ops, namespace), name)


class _OpNamespace(types.ModuleType):
    """The operators of a namespace: ``torch.ops.aten``."""

    __file__ = "torch.ops"

    def __init__(self, name: str):
        super().__init__(f"torch.ops.{name}")
        self.name = name

    def __getattr__(self, name: str) -> OpOverloadPacket:
        is_there = bool(_C._operators(f"{self.name}::{name}"))
        if name.startswith("__") and not is_there:
            raise AttributeError(f"module '{self.__name__}' has no attribute '{name}'")
        if not is_there and not self._define(name):
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{name}'")
        packet = OpOverloadPacket(self.name, name)
        setattr(self, name, packet)
        return packet

    def _define(self, name: str) -> bool:
        """Whether there is such an operator once those that only PyTorch has are defined."""
        if self.name == "aten" and name.startswith("_foreach_"):
            import taeda._library.aten_foreach
        elif self.name == "aten":
            import taeda._functions.indices
            import taeda._library.assertions
            import taeda._library.aten as own

            if not _C._operators(f"aten::{name}") and hasattr(own, "ALL_DEFINED"):
                import taeda._decomp.operators
        elif self.name == "prim":
            import taeda._library.prim
        elif self.name == "profiler":
            import taeda._library.profiler
        elif self.name in ("_c10d_functional", "c10d", "c10d_functional"):
            import taeda._library.collectives
        elif self.name == "quantized_decomposed":
            import taeda._library.decomposed  # noqa: F401

        return bool(_C._operators(f"{self.name}::{name}"))

    def __iter__(self) -> Iterator[str]:
        return iter(self.__dir__())

    def __dir__(self) -> list[str]:
        prefix = f"{self.name}::"
        names = {op._operator_name for op in _C._operators(None)}
        return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))


class _Ops(types.ModuleType):
    """torch.ops: a namespace for each library of operators, 'aten' for those of PyTorch."""

    __file__ = "_ops.py"

    def __init__(self) -> None:
        super().__init__("torch.ops")
        self.loaded_libraries: set[str] = set()

    def __getattr__(self, name: str) -> _OpNamespace:
        if name.startswith("__"):
            raise AttributeError(f"module 'torch.ops' has no attribute '{name}'")
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        return namespace

    def load_library(self, path: Any) -> None:
        """Loads a shared library, whose TD_LIBRARY blocks register their operators.

        Raises what a block throws, RuntimeError for a function whose types are not those of its
        schema, and OSError where the file cannot be loaded."""
        import os

        from taeda import _libraries

        path = os.path.realpath(path)
        if not _libraries.supplies(path):
            _C._load_library(path)
        self.loaded_libraries.add(path)


ops = _Ops()
sys.modules.setdefault("taeda.ops", ops)


def all_schemas() -> list[FunctionSchema]:
    """The schema of every operator there is."""
    return [op._schema for op in _C._operators(None)]


def schemas_for(name: str) -> list[FunctionSchema]:
    """The schemas of one name's overloads: "aten::add"."""
    return [op._schema for op in _C._operators(name)]


def schema_of(name: str, overload: str = "") -> FunctionSchema:
    """The schema of one overload; RuntimeError where there is none."""
    found = _C._operator(name, overload)
    if found is None:
        dot = f".{overload}" if overload else ""
        raise RuntimeError(f"Could not find an operator called {name}{dot}")
    return found._schema


def __getattr__(name: str) -> Any:
    if name in ("HigherOrderOperator", "_higher_order_ops"):
        from taeda import _higher_order_operator

        return getattr(_higher_order_operator, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
