"""C++ of the operators by file: each entry's device function, dispatch table and entry functions.

For every entry a function ``op::IDENT`` is generated; the public overloads and Tensor methods call
it. A dispatched operator's ``op::IDENT`` wraps dimensions, collects keys and jumps through a
constant table; its device function checks the contract, allocates and launches. A composite's
``op::IDENT`` is its translated ``expr``.
"""

from __future__ import annotations

from . import fallback, records
from .contract import contract_lines, wrap_lines
from .cpp import Table, composite_body, impl_name, names, parameters
from .device import device_function, meta_function
from .dispatch import copied_variants, dispatch_lines, keys_expression
from .fallback import is_native
from .kernels import of_entry
from .op import Op
from .text import block, join_lines


def composite_lines(op: Op, table: Table) -> list[str]:
    result, params, args = op.sig.return_cpp, parameters(op.sig), names(op.sig)
    composite = f"composite_{op.ident}"
    keys = "dispatch::composite_keys()"
    if records.is_leaf(op):
        keys = f"dispatch::leaf_keys({keys_expression(op)})"
    body = [f"return impl::{impl_name(op)}({args});"]
    if op.body == "expr":
        body = composite_body(op, table, op.source)
    # The record points at it too: inlined into the entry function it would be there twice.
    head = f"[[gnu::noinline]] static {result} {composite}({params})"
    stopped = f"modes_{op.ident}({', '.join(filter(None, ['keys', args]))})"
    return [
        *records.modes_lines(op, ", ".join(filter(None, ["KeySet keys", params]))),
        *block(head, wrap_lines(op), contract_lines(op, table), body),
        *block(
            f"{result} op::{op.ident}({params})",
            f"if (const KeySet keys = {keys}; !keys.empty()) [[unlikely]]",
            f"  return {stopped};",
            f"return {composite}({args});",
        ),
    ]


def dispatched_lines(op: Op, table: Table) -> list[str]:
    lines = []
    if op.body == "pointwise":
        for value in op.functors:
            lines.append(f"const DenseTable& dense_{op.loop_name(value)}();")
    lines += device_function(op, table)
    if op.host == "sizes":
        lines += meta_function(op)
    if not is_native(op, "cuda"):
        lines += fallback.lines(op)
    return [*lines, *dispatch_lines(op)]


def operator_lines(op: Op, table: Table) -> list[str]:
    lines = [f"// {op.sig.text}"]
    lines += (dispatched_lines if op.dispatched else composite_lines)(op, table)
    lines += copied_variants(op)
    lines += records.record_lines(op)
    if op.expr and op.is_replayed:
        head = f"{op.sig.return_cpp} definition::{op.ident}({parameters(op.sig)})"
        lines += block(head, composite_body(op, table, op.expr))
    return lines


def source_file(ops: list[Op], table: Table) -> str:
    kernels = dict.fromkeys(of_entry(op).declaration for op in ops if op.body == "kernel")
    return join_lines(
        '#include "autograd/generated.h"',
        "namespace taeda {",
        *(f"namespace kernels {{ {text} }}" for text in kernels),
        *(line for op in ops for line in operator_lines(op, table)),
        "}  // namespace taeda",
    )
