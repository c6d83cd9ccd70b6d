"""The types of the schema language, and what each of them is in C++, in expressions and in Python.

``dim`` and ``dims`` are ours: integers that name dimensions of the first tensor argument, whose range
check and wrapping of negative values the generator writes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Type:
    name: str  # in the schema; with "?" behind it, None is taken too
    expr: str  # in the expression language (expr.py)
    letters: str  # in operators' records (src/ops/boxing.cc): as it is, and with "?"
    cpp: str  # C++ parameter
    owner: str  # C++ type that owns such a value beyond a call
    optional: str  # both with "?"
    optional_owner: str
    kind: str  # how Python bindings read it (src/python/arguments.h): its Kind
    getter: str  # and the method of Arguments
    python: str  # annotation in stubs


_VIEW, _TEXT = "std::optional<Span<const double>>", "std::optional<std::string_view>"
_DIMS, _REALS = "std::optional<DimVector>", "std::optional<std::vector<double>>"
_STRING = "std::optional<std::string>"
# fmt: off
TYPES = {row[0]: Type(*row) for row in (
    ("Tensor", "T", "TT", "const Tensor&", "Tensor", "const Tensor&", "Tensor", "kTensor", "tensor", "Tensor"),
    ("Tensor[]", "L", "L", "TensorSpan", "TensorList", "", "", "kTensors", "tensors", "Sequence[Tensor]"),
    ("Tensor?[]", "L", "l", "TensorSpan", "TensorList", "", "", "kOptTensors", "tensors", "Sequence[Tensor | None]"),
    ("Scalar", "S", "sS", "const Scalar&", "Scalar", "const OptScalar&", "OptScalar", "kScalar", "scalar", "Number"),
    ("int", "I", "iI", "int64_t", "int64_t", "OptInt", "OptInt", "kInt", "integer", "int"),
    ("int[]", "N", "vV", "IntSpan", "DimVector", "OptInts", _DIMS, "kInts", "ints", "Sequence[int]"),
    ("dim", "I", "xX", "int64_t", "int64_t", "OptInt", "OptInt", "kInt", "integer", "int"),
    ("dims", "N", "zZ", "IntSpan", "DimVector", "OptInts", _DIMS, "kInts", "ints", "int | Sequence[int]"),
    ("float", "F", "dD", "double", "double", "OptDouble", "OptDouble", "kFloat", "real", "float"),
    ("float[]", "Q", "wW", "Span<const double>", "std::vector<double>", _VIEW, _REALS, "kFloats", "reals", "Sequence[float]"),
    ("bool", "B", "bB", "bool", "bool", "OptBool", "OptBool", "kBool", "boolean", "bool"),
    ("str", "Y", "tU", "std::string_view", "std::string", _TEXT, _STRING, "kStr", "text", "str"),
    ("dtype", "D", "yY", "DType", "DType", "OptDType", "OptDType", "kDType", "dtype", "dtype"),
    ("device", "V", "cC", "Device", "Device", "OptDevice", "OptDevice", "kDevice", "device", "Device"),
    ("memory_format", "M", "mM", "MemoryFormat", "MemoryFormat", "OptMemoryFormat", "OptMemoryFormat",
     "kMemoryFormat", "memory_format", "memory_format"),
    ("Generator", "G", "gg", "Generator*", "Generator*", "Generator*", "Generator*", "kGenerator", "generator", "Generator"),
    # what factories take: dtype, layout (in Python only), device, pin_memory, requires_grad
    ("options", "O", "o", "const TensorOptions&", "TensorOptions", "", "", "", "", ""),
    ("layout", "", "", "", "", "", "", "kLayout", "", "layout"),
)}
# fmt: on


def is_type(text: str) -> bool:
    """Whether an argument may be declared so."""
    base = TYPES.get(text.removesuffix("?"))
    return bool(base and (base.cpp if text in TYPES else base.optional))
