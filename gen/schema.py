"""Operator signatures: PyTorch's schema language, parsed into plain data.

``add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor`` becomes a :class:`Signature`.
The types that may stand in it are the rows of ``TYPES``. ``dim`` and ``dims`` are ours: integers that
name dimensions of the first tensor argument, whose range check and wrapping of negative values the
generator writes. So is ``word``: a string, for which Python's calls raise ValueError of anything else.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from .text import enumerator


@dataclass(frozen=True)
class Type:
    name: str  # in the schema; with "?" behind it, None is taken too
    expr: str  # in the expression language (expr.py)
    letters: str  # in operators' records (src/ops/boxing.cc): as it is, and with "?"
    cpp: str  # C++ parameter
    owner: str  # C++ type that owns such a value beyond a call
    optional: str  # both with "?"
    optional_owner: str
    kind: str  # its Kind in Python bindings (src/python/arguments.h)
    python: str  # annotation in stubs


_VIEW, _TEXT = "std::optional<Span<const double>>", "std::optional<std::string_view>"
_DIMS, _REALS = "std::optional<DimVector>", "std::optional<std::vector<double>>"
_STRING = "std::optional<std::string>"
# fmt: off
TYPES = {row[0]: Type(*row) for row in (
    ("Tensor", "T", "TT", "const Tensor&", "Tensor", "const Tensor&", "Tensor", "kTensor", "Tensor"),
    ("Tensor[]", "L", "L", "TensorSpan", "TensorList", "", "", "kTensors", "Sequence[Tensor]"),
    ("Tensor?[]", "L", "l", "TensorSpan", "TensorList", "", "", "kOptTensors", "Sequence[Tensor | None]"),
    ("Scalar", "S", "sS", "const Scalar&", "Scalar", "const OptScalar&", "OptScalar", "kScalar", "Number"),
    ("int", "I", "iI", "int64_t", "int64_t", "OptInt", "OptInt", "kInt", "int"),
    ("int[]", "N", "vV", "IntSpan", "DimVector", "OptInts", _DIMS, "kInts", "Sequence[int]"),
    ("dim", "I", "xX", "int64_t", "int64_t", "OptInt", "OptInt", "kInt", "int"),
    ("dims", "N", "zZ", "IntSpan", "DimVector", "OptInts", _DIMS, "kInts", "int | Sequence[int]"),
    ("float", "F", "dD", "double", "double", "OptDouble", "OptDouble", "kFloat", "float"),
    ("float[]", "Q", "wW", "Span<const double>", "std::vector<double>", _VIEW, _REALS, "kFloats", "Sequence[float]"),
    ("bool", "B", "bB", "bool", "bool", "OptBool", "OptBool", "kBool", "bool"),
    ("str", "Y", "tU", "std::string_view", "std::string", _TEXT, _STRING, "kStr", "str"),
    ("word", "Y", "tU", "std::string_view", "std::string", "", "", "kWord", "str"),
    ("dtype", "D", "yY", "DType", "DType", "OptDType", "OptDType", "kDType", "dtype"),
    ("device", "V", "cC", "Device", "Device", "OptDevice", "OptDevice", "kDevice", "Device"),
    ("memory_format", "M", "mM", "MemoryFormat", "MemoryFormat", "OptMemoryFormat", "OptMemoryFormat",
     "kMemoryFormat", "memory_format"),
    ("Generator", "G", "gg", "Generator*", "Generator*", "Generator*", "Generator*", "kGenerator", "Generator"),
    # what factories take: dtype, layout (in Python only), device, pin_memory, requires_grad
    ("options", "O", "o", "const TensorOptions&", "TensorOptions", "", "", "", ""),
    ("layout", "", "", "", "", "", "", "kLayout", "layout"),
)}
# fmt: on


class SchemaError(Exception):
    """A table entry that cannot be understood; the message names the entry."""


@dataclass
class Argument:  # or a result
    name: str
    type: str  # schema type without the N of int[N]
    default: str | None = None  # Python source of the default
    keyword_only: bool = False
    mutated: bool = False  # Tensor(a!)
    repeat: int = 0  # the N of int[N]: one int stands for N equal ones
    named: bool = True  # by the text; results may not be, and are called "result", "result0", ...

    def __post_init__(self) -> None:
        self.is_tensor = self.type in ("Tensor", "Tensor?")
        self.is_tensor_list = self.type in ("Tensor[]", "Tensor?[]")
        self.optional = self.type.endswith("?")
        # Whether one int stands for `repeat` equal ones; adaptive pools fill their sizes in.
        self.one_for_all = self.type == "int[]" and self.repeat > 1 and self.name != "output_size"
        try:
            ast.literal_eval(self.default or "None")
        except ValueError:
            text = f"the default of '{self.name}' is no literal of Python: {self.default}"
            raise SchemaError(text) from None
        # The type without its "?".
        base = self.base = TYPES.get(self.type) or TYPES[self.type.removesuffix("?")]
        self.cpp_type = base.optional if self.optional else base.cpp
        self.stored_type = base.optional_owner if self.optional else base.owner
        # Its type in expressions; a missing tensor or generator is one that is not defined.
        self.expr_type = base.expr + ("?" if self.optional and base.expr not in "TG" else "")

    @property
    def cpp_default(self) -> str | None:
        """The default as a C++ expression; None where the argument has none."""
        if self.type == "options":
            return "TensorOptions()"
        if self.default is None:
            return None
        match ast.literal_eval(self.default):
            case None:
                return {"T": "Tensor()", "G": "nullptr"}.get(self.expr_type, "std::nullopt")
            case bool(value):
                return str(value).lower()
            case str(value) if self.base.expr == "M":
                return f"MemoryFormat::{enumerator(value)}"
            case str(value):
                return f'"{value}"'
            case value if self.base.expr == "N":  # becomes an IntSpan for the duration of a call
                items = value if isinstance(value, list) else [value] * max(self.repeat, 1)
                listed = ", ".join(f"int64_t{{{i}}}" for i in items)
                return f"IntSpan({{{listed}}})" if items else "IntSpan()"
            case int(value) if self.base.expr == "S":
                return f"Scalar(int64_t{{{value}}})"
            case value:
                return f"Scalar({value})" if self.base.expr == "S" else str(value)


@dataclass
class Signature:
    name: str  # without the overload
    overload: str
    args: list[Argument]
    returns: list[Argument]
    text: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        # A C++ identifier of its own for each overload; a double underscore is reserved in C++.
        stem = f"{self.name}inplace" if self.name.endswith("_") and self.overload else self.name
        self.ident = f"{stem}_{self.overload}" if self.overload else stem
        kinds = [r.stored_type for r in self.returns]
        self.return_cpp = f"std::tuple<{', '.join(kinds)}>" if len(kinds) > 1 else kinds[0]
        self.mutates = bool(self.args) and self.args[0].mutated
        self.tensor_args = [a for a in self.args if a.is_tensor]
        # The arguments that hold tensors, one or a list of them.
        self.tensors = [a for a in self.args if a.is_tensor or a.is_tensor_list]
        # The name of the first argument that is surely a tensor.
        self.first_tensor = next((a.name for a in self.args if a.type == "Tensor"), None)

    def parameters(self, defaults: bool = False, first: int = 0) -> str:
        """C++ parameters for the arguments from `first` on."""
        default = {a.name: f" = {a.cpp_default}" for a in self.args if defaults and a.cpp_default}
        given = self.args[first:]
        return ", ".join(f"{a.cpp_type} {a.name}{default.get(a.name, '')}" for a in given)

    def parts(self, made: str) -> list[str]:
        """C++ of each result, in what a function returned."""
        n = len(self.returns)
        return [made] if n == 1 else [f"std::get<{i}>({made})" for i in range(n)]

    def arg(self, name: str) -> Argument:
        found = next((a for a in self.args if a.name == name), None)
        if found is None:
            raise SchemaError(f"{self.text}: no argument called '{name}'")
        return found


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


def _declared(text: str, keyword_only: bool = False, unnamed: str = "") -> Argument:
    """An argument or, where `unnamed` is what one without a name is called, a result."""
    match = _ITEM.match(text)
    if not match or not (match["name"] or unnamed):
        raise SchemaError(f"cannot read {'result' if unnamed else 'argument'} '{text}'")
    kind = match["base"] + match["of"] + ("[]" if match["list"] else "") + match["optional"]
    base = TYPES.get(kind.removesuffix("?"))
    if not (base and (base.optional if kind.endswith("?") else base.cpp)):
        what = "result" if unnamed else "argument"
        raise SchemaError(f"unknown type '{kind}' of {what} '{match['name'] or unnamed}'")
    mutated, repeat = "!" in (match["alias"] or ""), int(match["n"] or 0)
    name, named = match["name"] or unnamed, bool(match["name"])
    return Argument(name, kind, match["default"], keyword_only, mutated, repeat, named)


def parse(text: str) -> Signature:
    """Parses one schema line; SchemaError names the line and what is wrong with it."""
    text = " ".join(text.split())
    try:
        head = _HEAD.match(text)
        if not head:
            raise SchemaError("expected 'name(arguments) -> returns'")
        name, overload, arguments, returned = head.groups()
        items = _items(arguments)
        star = items.index("*") if "*" in items else len(items)
        args = [_declared(item, i > star) for i, item in enumerate(items) if i != star]
        items = _items(returned[1:-1]) if returned.startswith("(") else [returned]
        names = [f"result{i}" for i in range(len(items))] if len(items) > 1 else ["result"]
        results = [_declared(item, unnamed=result) for item, result in zip(items, names)]
        return Signature(name, overload or "", args, results, text)
    except SchemaError as error:
        raise SchemaError(f"{text}: {error}") from None
