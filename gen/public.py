"""What C++ programs see of the operators: taeda/ops.h and the methods of Tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from .cpp import Table, declarations, names, parameters
from .op import Op
from .schema import Signature
from .text import join_lines

ARITHMETIC = {
    "+": ("add", ", Scalar(int64_t{1})"),
    "-": ("sub", ", Scalar(int64_t{1})"),
    "*": ("mul", ""),
    "/": ("div", ""),
    "%": ("remainder", ""),
    "&": ("bitwise_and", ""),
    "|": ("bitwise_or", ""),
    "^": ("bitwise_xor", ""),
}
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
UNARY = {"-": "neg", "~": "bitwise_not", "!": "logical_not"}


def public_header(table: Table) -> str:
    """taeda/ops.h: one overload set a name, and namespace op with one name an overload."""
    unique, overloads = [], []
    seen: set[tuple[str, ...]] = set()
    for op in table.ops:
        unique += [text for space, _, text in declarations(op) if space == "op"]
        # Of two overloads that C++ cannot tell apart the first is the public one.
        key = (op.name, *(a.cpp_type for a in op.sig.args))
        if key not in seen:
            seen.add(key)
            overloads += _overload(op, table)
    return join_lines(
        "// Every operator as a free function; defined by the table in ops/.",
        "#pragma once",
        '#include "taeda/tensor.h"',
        "namespace taeda {",
        "// One name an overload, for generated code and for callers who want no overload resolution.",
        "namespace op {",
        *unique,
        "}  // namespace op",
        *overloads,
        *_operator_symbols(),
        "}  // namespace taeda",
    )


def _overload(op: Op, table: Table) -> list[str]:
    doc = (op.doc.strip().splitlines() or [""])[0]
    params = parameters(op.sig, _defaults_that_stay_unique(op, table))
    call = f"op::{op.ident}({names(op.sig)})"
    lines = [f"// {doc}", f"inline {op.sig.return_cpp} {op.name}({params}) {{ return {call}; }}"]
    if "inplace" in op.variants:
        call = f"op::{op.ident}_inplace({names(op.sig)})"
        lines.append(f"inline Tensor {op.name}_({params}) {{ return {call}; }}")
    return lines


def _operator_symbols() -> list[str]:
    """C++ operators as in Python; numbers convert (`x * 2.0`). `x += y` changes x's elements."""
    out = []
    both = "(const Tensor& a, const Tensor& b)"
    for sign, (name, rest) in ARITHMETIC.items():
        args = f"a, b{rest}"
        out.append(f"inline Tensor operator{sign}{both} {{ return op::{name}({args}); }}")
        body = f"op::{name}_inplace({args}); return a;"
        out.append(f"inline const Tensor& operator{sign}={both} {{ {body} }}")
    for sign, name in COMPARISONS.items():
        out.append(f"inline Tensor operator{sign}{both} {{ return op::{name}(a, b); }}")
    for sign, name in UNARY.items():
        out.append(f"inline Tensor operator{sign}(const Tensor& a) {{ return op::{name}(a); }}")
    return out


def _defaults_that_stay_unique(op: Op, table: Table) -> bool:
    """Defaults are declared unless another overload would then be called by the same arguments."""
    required = [a.cpp_type for a in op.sig.args if a.default is None]
    overloads = table.overloads(op.name)
    for other in overloads:
        same = [a.cpp_type for a in other.args if a.default is None] == required
        if other.ident != op.ident and same:
            return other.args[len(required) :] == [] or overloads[0].ident == op.ident
    return True


def _methods(table: Table) -> Iterator[tuple[Op, Signature]]:
    """Operators that are methods, with what their parameters are besides `self`."""
    seen: set[tuple[str, ...]] = set()
    for op in table.ops:
        named = any(p.startswith("Tensor.") for p in op.python)
        if not named or not op.sig.args or not op.sig.args[0].is_tensor:
            continue
        rest = Signature(op.name, op.sig.overload, op.sig.args[1:], op.sig.returns)
        key = (op.name, *(a.cpp_type for a in rest.args))
        if key not in seen:
            seen.add(key)
            yield op, rest


def methods_include(table: Table) -> str:
    """taeda/tensor_methods.inc, included inside class Tensor."""
    out = ["// Generated from ops/: operators whose first argument is `self`."]
    for op, rest in _methods(table):
        params = parameters(rest, _defaults_that_stay_unique(op, table))
        out.append(f"{op.sig.return_cpp} {op.name}({params}) const;")
        if "inplace" in op.variants:
            out.append(f"Tensor {op.name}_({params}) const;")
    return join_lines(*out)


def method_definitions(table: Table) -> dict[str, list[str]]:
    """Out-of-line bodies of the methods by operator name."""
    bodies: dict[str, list[str]] = defaultdict(list)
    for op, rest in _methods(table):
        forms = [(op.sig.return_cpp, "", "")]
        if "inplace" in op.variants:
            forms.append(("Tensor", "_", "_inplace"))
        given = ", ".join(["*this", *(a.name for a in rest.args)])
        for result, mark, suffix in forms:
            head = f"{result} Tensor::{op.name}{mark}({parameters(rest)}) const"
            bodies[op.name].append(f"{head} {{ return op::{op.ident}{suffix}({given}); }}")
    return bodies


def methods_file(lines: list[str]) -> str:
    return join_lines("namespace taeda {", *lines, "}  // namespace taeda")
