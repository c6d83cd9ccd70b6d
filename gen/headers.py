"""Headers: taeda/ops.h and the methods of Tensor for C++ programs, op/NAME.h for the library.

A file of the library that calls ``op::add`` includes "op/add.h" and no other operator's header, so
that a new operator compiles what uses it and nothing else. Generated files include those of their
operators and of what the translator called.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from .cpp import Table
from .names import python_names
from .op import Op
from .schema import Signature
from .text import INTERNAL, cut, join_lines


def declarations(op: Op) -> Iterator[tuple[str, str]]:
    """Namespace and declaration of every function that an entry stands for."""
    result, plain = op.result, op.parameters
    yield "op", f"{result} {op.ident}({plain});"
    if "inplace" in op.variants:
        yield "op", f"Tensor {op.ident}_inplace({plain});"
    if "out" in op.variants:
        yield "op", f"{result} {op.ident}_out({op.out_parameters});"
    if op.body == "cpp":
        yield "impl", f"{INTERNAL} {result} {op.implementation}({plain});"
    if op.dispatched:
        params = op.internal_parameters
        for layer in ("redispatch", "autograd_layer"):
            yield layer, f"{INTERNAL} {result} {op.ident}({params});"
        # Forward mode is rare: compiled for size.
        yield "forward_layer", f"{INTERNAL} [[gnu::cold]] {result} {op.ident}({params});"
    if op.is_replayed:
        yield "definition", f"{result} {op.ident}({plain});"
    if op.body == "kernel":
        views = ["const View&" for _ in ([] if op.mutates else op.sig.returns)]
        views += ("const View&" if a.is_tensor else a.cpp_type for a in op.sig.args)
        yield "cpu", f"void {op.source}({', '.join(views)});"


# --- for the library ---


def internal_headers(table: Table) -> dict[str, str]:
    """op/NAME.h for every operator name, its overloads together."""
    return {
        f"op/{name}.h": join_lines(
            *(f"// {op.sig.text}" for op in ops),
            "#pragma once",
            '#include "taeda/keys.h"',
            '#include "taeda/tensor.h"',
            "namespace taeda {",
            *(["struct View;"] if any(op.body == "kernel" for op in ops) else []),
            *(f"namespace {space} {{ {text} }}" for op in ops for space, text in declarations(op)),
            "}  // namespace taeda",
        )
        for name, ops in table.by_name.items()
    }


def source(
    table: Table, ops: list[Op], includes: list[str], lines: list[str], space: str = "taeda"
) -> str:
    """A source file for `ops`, with the headers of what was called since the last one was made."""
    called = {op.name for op in table.ops if op.ident in table.called} | {op.name for op in ops}
    table.called.clear()
    return join_lines(
        *(f'#include "{name}"' for name in [*(f"op/{op}.h" for op in sorted(called)), *includes]),
        f"namespace {space} {{",
        *lines,
        f"}}  // namespace {space}",
    )


# --- for users ---


def _forms(op: Op) -> list[tuple[str, str, str]]:
    """Result, public name and function of an operator and of its in-place form."""
    forms = [(op.result, op.name, f"op::{op.ident}")]
    if "inplace" in op.variants:
        forms.append(("Tensor", f"{op.name}_", f"op::{op.ident}_inplace"))
    return forms


def _distinct(ops: Iterable[Op], skipped: int) -> list[Op]:
    """Of overloads that C++ cannot tell apart the first, arguments from `skipped` on being looked at."""
    found: dict[tuple[str, ...], Op] = {}
    for op in ops:
        found.setdefault((op.name, *(a.cpp_type for a in op.sig.args[skipped:])), op)
    return [*found.values()]


def public_header(table: Table) -> str:
    """taeda/ops.h: one overload set a name, and namespace op with one name an overload."""
    overloads = []
    for op in _distinct((op for op in table.ops if not _taken_for_numbers(op, table)), 0):
        params = op.sig.parameters(_defaults_that_stay_unique(op, table))
        overloads.append("// " + op.doc.strip().split("\n")[0])
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
        *(text for op in table.ops for space, text in declarations(op) if space == "op"),
        "}  // namespace op",
        *overloads,
        "}  // namespace taeda",
        '#include "taeda/tensor_operators.h"',
    )


def foreach_lines(table: Table) -> str:
    """taeda/foreach.inc: functions of lists, of which taeda/foreach.h makes templates."""
    lines, inplace = [], []
    for (owner, name), calls in python_names(table.ops).items():
        if owner != "foreach":
            continue
        op = calls[0].op
        lines.append(f"TD_FOREACH(_foreach_{name}, {op.name})")
        if "inplace" in op.variants:
            inplace.append(f"TD_FOREACH(_foreach_{name}_, {op.name}_)")
    return join_lines(*lines, *inplace)


def _taken_for_numbers(op: Op, table: Table) -> bool:
    """Whether numbers, which convert to Tensor and Scalar, fit `op` and an overload for numbers."""

    def types(sig: Signature) -> list[str]:
        return [a.cpp_type.replace("Tensor&", "Scalar&") for a in sig.args]

    numbers = [types(sig) for sig in table.overloads(op.name) if not sig.tensor_args]
    return bool(op.sig.tensor_args) and types(op.sig) in numbers


def _defaults_that_stay_unique(op: Op, table: Table) -> bool:
    """Defaults are declared unless another overload would then be called by the same arguments."""
    required = [a.cpp_type for a in op.sig.args if a.default is None]
    overloads = table.overloads(op.name)
    for other in overloads:
        same = [a.cpp_type for a in other.args if a.default is None] == required
        if other.ident != op.ident and same:
            return other.args[len(required) :] == [] or overloads[0].ident == op.ident
    return True


def method_files(table: Table) -> dict[str, str]:
    """taeda/tensor_methods.inc, included inside class Tensor, of operators whose first argument is a
    tensor; the methods' bodies, those of one name together."""
    named = (op for op in table.ops if any(p.startswith("Tensor.") for p in op.python))
    declared = ["// Generated from ops/: operators whose first argument is `self`."]
    bodies: dict[str, list[str]] = defaultdict(list)
    for op in _distinct((op for op in named if op.sig.args and op.sig.args[0].is_tensor), 1):
        given = ", ".join(["*this", *(a.name for a in op.sig.args[1:])])
        plain = op.sig.parameters(first=1)
        params = op.sig.parameters(_defaults_that_stay_unique(op, table), first=1)
        for result, name, function in _forms(op):
            declared.append(f"{result} {name}({params}) const;")
            body = f"return {function}({given});"
            bodies[op.name].append(f"{result} Tensor::{name}({plain}) const {{ {body} }}")
    files = {"include/taeda/tensor_methods.inc": join_lines(*declared)}
    for first, names in cut(bodies, str, 300).items():
        lines = [line for name in names for line in bodies[name]]
        ops = [table.by_name[name][0] for name in names]
        files[f"methods/methods_{first}.cc"] = source(table, ops, [], lines)
    return files
