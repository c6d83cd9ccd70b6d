"""Headers: taeda/ops.h and the methods of Tensor for C++ programs, op/NAME.h for the library.

A file of the library that calls ``op::add`` includes "op/add.h" and no other operator's header, so
that a new operator compiles what uses it and nothing else. Generated files find in their own text
which headers they need.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from .cpp import Table
from .op import Op
from .schema import Signature
from .text import INTERNAL, join_lines

QUALIFIED = re.compile(r"\b(op|impl|redispatch|autograd_layer|forward_layer|definition)::(\w+)")


def declarations(op: Op) -> Iterator[tuple[str, str, str]]:
    """Namespace, name and declaration of every function that an entry stands for."""
    result, plain = op.result, op.parameters
    yield "op", op.ident, f"{result} {op.ident}({plain});"
    if "inplace" in op.variants:
        yield "op", f"{op.ident}_inplace", f"Tensor {op.ident}_inplace({plain});"
    if "out" in op.variants:
        yield "op", f"{op.ident}_out", f"{result} {op.ident}_out({op.out_parameters});"
    if op.body == "cpp":
        yield "impl", op.implementation, f"{INTERNAL} {result} {op.implementation}({plain});"
    if op.dispatched:
        params = op.internal_parameters
        for layer in ("redispatch", "autograd_layer"):
            yield layer, op.ident, f"{INTERNAL} {result} {op.ident}({params});"
        # Forward mode is rare: compiled for size.
        yield "forward_layer", op.ident, f"{INTERNAL} [[gnu::cold]] {result} {op.ident}({params});"
    if op.is_replayed:
        yield "definition", op.ident, f"{result} {op.ident}({plain});"


# --- for the library ---


def internal_headers(table: Table) -> dict[str, str]:
    """op/NAME.h for every operator name, its overloads together."""
    return {f"op/{name}.h": _internal_header(ops) for name, ops in table.by_name.items()}


def _internal_header(ops: list[Op]) -> str:
    return join_lines(
        *(f"// {op.sig.text}" for op in ops),
        "#pragma once",
        '#include "taeda/keys.h"',
        '#include "taeda/tensor.h"',
        "namespace taeda {",
        *(f"namespace {space} {{ {text} }}" for op in ops for space, _, text in declarations(op)),
        "}  // namespace taeda",
    )


class Needed:
    """Finds the headers that a text wants by the qualified names in it."""

    def __init__(self, table: Table):
        self._header_of: dict[tuple[str, str], str] = {}
        for op in table.ops:
            for space, name, _ in declarations(op):
                self._header_of.setdefault((space, name), f"op/{op.name}.h")

    def complete(self, text: str) -> str:
        """`text` with what it calls declared in front."""
        found = {self._header_of.get((m[1], m[2]), "") for m in QUALIFIED.finditer(text)}
        return "\n".join([*(f'#include "{name}"' for name in sorted(found - {""})), text])


# --- for users ---


def _forms(op: Op) -> list[tuple[str, str, str]]:
    """Result, public name and function of an operator and of its in-place form."""
    forms = [(op.result, op.name, f"op::{op.ident}")]
    if "inplace" in op.variants:
        forms.append(("Tensor", f"{op.name}_", f"op::{op.ident}_inplace"))
    return forms


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
            params = op.sig.parameters(_defaults_that_stay_unique(op, table))
            summary, *_ = op.doc.strip().split("\n")
            overloads.append(f"// {summary}")
            overloads += [
                f"inline {result} {name}({params}) {{ return {function}({op.names}); }}"
                for result, name, function in _forms(op)
            ]
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
        "}  // namespace taeda",
        '#include "taeda/tensor_operators.h"',
    )


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
        params = rest.parameters(_defaults_that_stay_unique(op, table))
        out += [f"{result} {name}({params}) const;" for result, name, _ in _forms(op)]
    return join_lines(*out)


def method_definitions(table: Table) -> dict[str, list[str]]:
    """Out-of-line bodies of the methods by operator name."""
    bodies: dict[str, list[str]] = defaultdict(list)
    for op, rest in _methods(table):
        given = ", ".join(["*this", *(a.name for a in rest.args)])
        bodies[op.name] += [
            f"{result} Tensor::{name}({rest.parameters()}) const {{ return {function}({given}); }}"
            for result, name, function in _forms(op)
        ]
    return bodies
