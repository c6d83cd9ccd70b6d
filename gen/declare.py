"""Declarations of the operators for the library's own files: one header a name, op/NAME.h.

A file that calls ``op::add`` includes "op/add.h" and no other operator's header, so that a new
operator compiles what uses it and nothing else. Generated files find in their own text which
headers they need.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from .cpp import (
    Table,
    impl_name,
    internal_parameters,
    kernel_declaration,
    out_names,
    parameters,
)
from .table import Op

QUALIFIED = re.compile(r"\b(op|impl|redispatch|autograd_layer|forward_layer|definition)::(\w+)")

INTERNAL = '[[gnu::visibility("hidden")]]'  # not among the library's dynamic symbols


def declarations(op: Op) -> Iterator[tuple[str, str, str]]:
    """Namespace, name and declaration of every function that an entry stands for."""
    result, plain = op.sig.return_cpp, parameters(op.sig)
    yield "op", op.ident, f"{result} {op.ident}({plain});"
    if "inplace" in op.variants:
        yield "op", f"{op.ident}_inplace", f"Tensor {op.ident}_inplace({plain});"
    if "out" in op.variants:
        given = ([plain] if plain else []) + [f"const Tensor& {o}" for o in out_names(op)]
        yield "op", f"{op.ident}_out", f"{result} {op.ident}_out({', '.join(given)});"
    if op.body == "cpp":
        yield "impl", impl_name(op), f"{INTERNAL} {result} {impl_name(op)}({plain});"
    if op.dispatched:
        params = internal_parameters(op)
        for layer in ("redispatch", "autograd_layer"):
            yield layer, op.ident, f"{INTERNAL} {result} {op.ident}({params});"
        # Forward mode is rare: compiled for size.
        yield "forward_layer", op.ident, f"{INTERNAL} [[gnu::cold]] {result} {op.ident}({params});"
    if op.expr and op.body != "expr":
        yield "definition", op.ident, f"{result} {op.ident}({plain});"


def headers(table: Table) -> dict[str, str]:
    """op/NAME.h for every operator name, its overloads together."""
    by_name: dict[str, list[Op]] = defaultdict(list)
    for op in table.ops:
        by_name[op.name].append(op)
    return {f"op/{name}.h": _header(ops) for name, ops in by_name.items()}


def _header(ops: list[Op]) -> str:
    lines = [f"// {op.sig.text}" for op in ops]
    lines += ["#pragma once", '#include "taeda/keys.h"', '#include "taeda/tensor.h"']
    lines.append("namespace taeda {")
    for op in ops:
        lines += [f"namespace {space} {{ {text} }}" for space, _, text in declarations(op)]
    return "\n".join([*lines, "}  // namespace taeda", ""])


class Needed:
    """Finds the headers that a text wants by the qualified names in it."""

    def __init__(self, table: Table):
        self._header_of: dict[tuple[str, str], str] = {}
        for op in table.ops:
            for space, name, _ in declarations(op):
                self._header_of.setdefault((space, name), f"op/{op.name}.h")

    def includes(self, text: str) -> list[str]:
        found = {self._header_of.get((m[1], m[2]), "") for m in QUALIFIED.finditer(text)}
        return [f'#include "{name}"' for name in sorted(found - {""})]

    def complete(self, text: str) -> str:
        """`text` with what it calls declared in front."""
        return "\n".join([*self.includes(text), text])


def kernels_header(table: Table) -> str:
    """What src/kernels/cpu must define; a kernel's own file may include it to be checked."""
    kernels = {kernel_declaration(op) for op in table.ops if op.body == "kernel"}
    return "\n".join(
        [
            "// The kernels that the table names: what src/kernels/cpu must define.",
            "#pragma once",
            "#include <optional>",
            '#include "kernels/view.h"',
            '#include "taeda/scalar.h"',
            "namespace taeda {",
            "class Generator;",
            "using OptInt = std::optional<int64_t>;",
            "using OptDouble = std::optional<double>;",
            "using OptBool = std::optional<bool>;",
            "using OptScalar = std::optional<Scalar>;",
            "using OptDType = std::optional<DType>;",
            "using OptInts = std::optional<IntSpan>;",
            "}",
            "namespace taeda::cpu {",
            *sorted(kernels),
            "}",
            "",
        ]
    )
