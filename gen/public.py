"""What C++ programs see of the operators: taeda/ops.h and the methods of Tensor."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from .cpp import Table, declarations, join_lines, names, parameters
from .schema import Signature
from .table import Op


def public_header(table: Table) -> str:
    """taeda/ops.h: one overload set a name, and namespace op with one name an overload."""
    unique, overloads = [], []
    seen: set[tuple[str, ...]] = set()
    for op in table.ops:
        unique += [text for space, _, text in declarations(op) if space == "op"]
        shown = _defaults_that_stay_unique(op, table)
        key = (op.name, *(a.cpp_type for a in op.sig.args))
        public = (
            key not in seen
        )  # of two overloads that C++ cannot tell apart the first is the public one
        seen.add(key)
        doc = (op.doc.strip().splitlines() or [""])[0]
        if public:
            overloads.append(
                f"// {doc}\ninline {op.sig.return_cpp} {op.name}({parameters(op.sig, shown)}) "
                f"{{ return op::{op.ident}({names(op.sig)}); }}"
            )
        if "inplace" in op.variants:
            if public:
                overloads.append(
                    f"inline Tensor {op.name}_({parameters(op.sig, shown)}) {{ return op::{op.ident}_inplace({names(op.sig)}); }}"
                )
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


def _operator_symbols() -> list[str]:
    """C++ operators as in Python; numbers convert (`x * 2.0`). `x += y` changes x's elements."""
    arithmetic = {
        "+": ("add", ", Scalar(int64_t{1})"),
        "-": ("sub", ", Scalar(int64_t{1})"),
        "*": ("mul", ""),
        "/": ("div", ""),
        "%": ("remainder", ""),
        "&": ("bitwise_and", ""),
        "|": ("bitwise_or", ""),
        "^": ("bitwise_xor", ""),
    }
    comparisons = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}
    unary = {"-": "neg", "~": "bitwise_not", "!": "logical_not"}
    out = []
    for sign, (name, rest) in arithmetic.items():
        out += [
            f"inline Tensor operator{sign}(const Tensor& a, const Tensor& b) {{ return op::{name}(a, b{rest}); }}",
            f"inline const Tensor& operator{sign}=(const Tensor& a, const Tensor& b) {{ op::{name}_inplace(a, b{rest}); return a; }}",
        ]
    for sign, name in comparisons.items():
        out.append(
            f"inline Tensor operator{sign}(const Tensor& a, const Tensor& b) {{ return op::{name}(a, b); }}"
        )
    for sign, name in unary.items():
        out.append(f"inline Tensor operator{sign}(const Tensor& a) {{ return op::{name}(a); }}")
    return out


def _defaults_that_stay_unique(op: Op, table: Table) -> bool:
    """Defaults are declared unless another overload would then be called by the same arguments."""
    required = [a.cpp_type for a in op.sig.args if a.default is None]
    for other in table.overloads(op.name):
        if (
            other.ident != op.ident
            and [a.cpp_type for a in other.args if a.default is None] == required
        ):
            return (
                other.args[len(required) :] == [] or table.overloads(op.name)[0].ident == op.ident
            )
    return True


def _methods(table: Table) -> Iterator[tuple[Op, Signature]]:
    """Operators that are methods, with what their parameters are besides `self`."""
    seen: set[tuple[str, ...]] = set()
    for op in table.ops:
        if (
            not op.sig.args
            or not any(p.startswith("Tensor.") for p in op.python)
            or not op.sig.args[0].is_tensor
        ):
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
        shown = _defaults_that_stay_unique(op, table)
        out.append(f"{op.sig.return_cpp} {op.name}({parameters(rest, shown)}) const;")
        if "inplace" in op.variants:
            out.append(f"Tensor {op.name}_({parameters(rest, shown)}) const;")
    return "\n".join(out) + "\n"


def method_definitions(table: Table) -> dict[str, list[str]]:
    """Out-of-line bodies of the methods by operator name."""
    bodies: dict[str, list[str]] = defaultdict(list)
    for op, rest in _methods(table):
        out = bodies[op.name]
        call = ", ".join(["*this", *(a.name for a in rest.args)])
        out.append(
            f"{op.sig.return_cpp} Tensor::{op.name}({parameters(rest)}) const {{ return op::{op.ident}({call}); }}"
        )
        if "inplace" in op.variants:
            out.append(
                f"Tensor Tensor::{op.name}_({parameters(rest)}) const {{ return op::{op.ident}_inplace({call}); }}"
            )
    return bodies


def methods_file(lines: list[str]) -> str:
    return join_lines("namespace taeda {", *lines, "}  // namespace taeda")
