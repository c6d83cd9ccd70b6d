"""Operator signatures: PyTorch's schema language, parsed into plain data.

``add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`` becomes a :class:`Signature`.
The types that may stand in it are those of types.py.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from .text import enumerator
from .types import TYPES, Type, is_type

RETURN_TYPES = ("Tensor", "Tensor[]", "int", "int[]", "bool", "float", "Scalar", "dtype")


class SchemaError(Exception):
    """A table entry that cannot be understood; the message names the entry."""


@dataclass
class Argument:
    name: str
    type: str  # schema type without the N of int[N]
    default: str | None = None  # Python source of the default
    keyword_only: bool = False
    mutated: bool = False  # Tensor(a!)
    repeat: int = 0  # the N of int[N]: one int stands for N equal ones

    @property
    def is_tensor(self) -> bool:
        return self.type in ("Tensor", "Tensor?")

    @property
    def is_tensor_list(self) -> bool:
        return self.type in ("Tensor[]", "Tensor?[]")

    @property
    def one_for_all(self) -> bool:
        """Whether one int stands for `repeat` equal ones; adaptive pools fill their sizes in."""
        return self.type == "int[]" and self.repeat > 1 and self.name != "output_size"

    @property
    def optional(self) -> bool:
        return self.type.endswith("?")

    @property
    def base(self) -> Type:
        """The type without its "?"."""
        return TYPES.get(self.type) or TYPES[self.type.removesuffix("?")]

    @property
    def cpp_type(self) -> str:
        return self.base.optional if self.optional else self.base.cpp

    @property
    def stored_type(self) -> str:
        return self.base.optional_owner if self.optional else self.base.owner

    @property
    def expr_type(self) -> str:
        """Its type in expressions; a missing tensor or generator is one that is not defined."""
        nullable = self.base.expr in ("T", "G")
        return self.base.expr + ("?" if self.optional and not nullable else "")

    @property
    def cpp_default(self) -> str | None:
        """The default as a C++ expression; None where the argument has none."""
        if self.type == "options":
            return "TensorOptions()"
        if self.default is None:
            return None
        value = ast.literal_eval(self.default)
        if value is None:
            return {"Tensor?": "Tensor()", "Generator?": "nullptr"}.get(self.type, "std::nullopt")
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            if self.type.startswith("memory_format"):
                return f"MemoryFormat::{enumerator(value)}"
            return f'"{value}"'
        if isinstance(value, (list, tuple)):
            return cpp_int_list([str(v) for v in value])
        if self.type.startswith(("int[]", "dims")):
            return cpp_int_list([str(value)] * max(self.repeat, 1))
        if self.type.startswith("Scalar"):
            return f"Scalar({value})" if isinstance(value, float) else f"Scalar(int64_t{{{value}}})"
        return str(value)


def cpp_int_list(items: list[str]) -> str:
    """A braced list that becomes an IntSpan for the duration of a call."""
    return (
        "IntSpan({" + ", ".join(f"int64_t{{{i}}}" for i in items) + "})" if items else "IntSpan()"
    )


@dataclass
class Return:
    type: str
    name: str
    named: bool = True  # by the text; else "result", "result0", ...

    @property
    def base(self) -> Type:
        return TYPES[self.type]

    @property
    def cpp_type(self) -> str:
        return self.base.owner


@dataclass
class Signature:
    name: str  # without the overload
    overload: str
    args: list[Argument]
    returns: list[Return]
    text: str = field(default="", repr=False)

    @property
    def ident(self) -> str:
        """A C++ identifier of its own for each overload."""
        if not self.overload:
            return self.name
        # A double underscore is reserved in C++.
        stem = f"{self.name}inplace" if self.name.endswith("_") else self.name
        return f"{stem}_{self.overload}"

    @property
    def return_cpp(self) -> str:
        if len(self.returns) == 1:
            return self.returns[0].cpp_type
        return "std::tuple<" + ", ".join(r.cpp_type for r in self.returns) + ">"

    def parameters(self, defaults: bool = False) -> str:
        """C++ parameters."""
        parts = []
        for a in self.args:
            default = f" = {a.cpp_default}" if defaults and a.cpp_default is not None else ""
            parts.append(f"{a.cpp_type} {a.name}{default}")
        return ", ".join(parts)

    def parts(self, made: str) -> list[str]:
        """C++ of each result, in what a function returned."""
        n = len(self.returns)
        return [made] if n == 1 else [f"std::get<{i}>({made})" for i in range(n)]

    @property
    def mutates(self) -> bool:
        return bool(self.args) and self.args[0].mutated

    def arg(self, name: str) -> Argument:
        for a in self.args:
            if a.name == name:
                return a
        raise SchemaError(f"{self.text}: no argument called '{name}'")

    def local(self, result: Return) -> str:
        """A C++ name for a result that no argument has."""
        taken = any(a.name == result.name for a in self.args)
        return f"{result.name}_out" if taken else result.name

    @property
    def tensor_args(self) -> list[Argument]:
        return [a for a in self.args if a.is_tensor]

    @property
    def first_tensor(self) -> str | None:
        """The name of the first argument that is surely a tensor."""
        return next((a.name for a in self.args if a.type == "Tensor"), None)

    @property
    def tensors(self) -> list[Argument]:
        """The arguments that hold tensors, one or a list of them."""
        return [a for a in self.args if a.is_tensor or a.is_tensor_list]


_HEAD = re.compile(r"^([A-Za-z_]\w*)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+)$")
_ITEM = re.compile(  # Tensor(a!)?[2]? name = default
    r"""(?P<base>[A-Za-z_]+) (\((?P<alias>\w!?)\))? (?P<of>\??)
    (?P<list>\[(?P<n>\d*)\])? (?P<optional>\??)
    (\s (?P<name>\w+) (\s*=\s*(?P<default>.+))?)?$""",
    re.X,
)
_COMMA = re.compile(r",(?![^(\[]*[)\]])")  # outside brackets


def _items(text: str) -> list[str]:
    return [part.strip() for part in _COMMA.split(text) if part.strip()]


def _typed(text: str, what: str) -> tuple[str, re.Match]:
    """The type at the start of an argument or a result, without alias and length; and the match."""
    match = _ITEM.match(text)
    if not match:
        raise SchemaError(f"cannot read {what} '{text}'")
    items = "[]" if match["list"] else ""
    return match["base"] + match["of"] + items + match["optional"], match


def _argument(text: str, keyword_only: bool) -> Argument:
    kind, match = _typed(text, "argument")
    if not match["name"]:
        raise SchemaError(f"cannot read argument '{text}'")
    if not is_type(kind):
        raise SchemaError(f"unknown type '{kind}' of argument '{match['name']}'")
    mutated, repeat = "!" in (match["alias"] or ""), int(match["n"] or 0)
    return Argument(match["name"], kind, match["default"], keyword_only, mutated, repeat)


def _result(text: str, unnamed: str) -> Return:
    kind, match = _typed(text, "result")
    if kind not in RETURN_TYPES:
        raise SchemaError(f"unknown return type '{kind}'")
    return Return(kind, match["name"] or unnamed, bool(match["name"]))


def parse(text: str) -> Signature:
    """Parses one schema line; SchemaError names the line and what is wrong with it."""
    text = " ".join(text.split())
    try:
        head = _HEAD.match(text)
        if not head:
            raise SchemaError("expected 'name(arguments) -> returns'")
        name, overload, arguments, returned = head.groups()
        args, keyword_only = [], False
        for item in _items(arguments):
            if item == "*":
                keyword_only = True
            else:
                args.append(_argument(item, keyword_only))
        several = returned.startswith("(")
        items = _items(returned[1:-1]) if several else [returned]
        names = [f"result{i}" for i in range(len(items))] if len(items) > 1 else ["result"]
        return Signature(name, overload or "", args, [*map(_result, items, names)], text)
    except SchemaError as error:
        raise SchemaError(f"{text}: {error}") from None
