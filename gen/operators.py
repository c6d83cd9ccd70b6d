"""C++ of the operators by file: each entry's device function, dispatch table and entry functions.

For every entry a function ``op::IDENT`` is generated; the public overloads and Tensor methods call
it. A dispatched operator's ``op::IDENT`` wraps dimensions, collects keys and jumps through a
constant table; its device function checks the contract, allocates and launches. A composite's
``op::IDENT`` is its translated ``expr``.
"""

from __future__ import annotations

from . import fallback, records
from .contract import contract_lines, wrap_lines
from .cpp import Table, composite_body, impl_name, join_lines, names, parameters
from .device import device_function, meta_function
from .dispatch import copied_variants, dispatch_lines, keys_expression
from .fallback import is_native
from .kernels import of_entry
from .table import Op


def composite_lines(op: Op, table: Table) -> list[str]:
    composite = f"composite_{op.ident}"
    keys = "dispatch::composite_keys()"
    if records.is_leaf(op):
        keys = f"dispatch::leaf_keys({keys_expression(op)})"
    lines = records.modes_lines(op, ", ".join(["KeySet keys", *filter(None, [parameters(op.sig)])]))
    # The record points at it too: inlined into the entry function it would be there twice.
    head = f"[[gnu::noinline]] static {op.sig.return_cpp}"
    lines.append(f"{head} {composite}({parameters(op.sig)}) {{")
    lines += ["  " + line for line in wrap_lines(op)]
    lines += ["  " + line for line in contract_lines(op, table)]
    if op.body == "cpp":
        lines.append(f"  return impl::{impl_name(op)}({names(op.sig)});")
    else:
        lines.append(composite_body(op, table, op.source))
    return [
        *lines,
        "}",
        f"{op.sig.return_cpp} op::{op.ident}({parameters(op.sig)}) {{",
        f"  if (const KeySet keys = {keys}; !keys.empty()) [[unlikely]]",
        f"    return modes_{op.ident}({', '.join(['keys', *filter(None, [names(op.sig)])])});",
        f"  return {composite}({names(op.sig)});",
        "}",
    ]


def operator_lines(op: Op, table: Table) -> list[str]:
    lines = [f"// {op.sig.text}"]
    if op.dispatched:
        if op.body == "pointwise":
            for value in op.functors:
                lines.append(f"const DenseTable& dense_{op.ident}{'_' + value if value else ''}();")
        lines += device_function(op, table)
        if op.host == "sizes":
            lines += meta_function(op)
        if not is_native(op, "cuda"):
            lines += fallback.lines(op)
        lines += dispatch_lines(op)
    else:
        lines += composite_lines(op, table)
    lines += copied_variants(op)
    lines += records.record_lines(op)
    if op.expr and op.body != "expr":
        lines += [
            f"{op.sig.return_cpp} definition::{op.ident}({parameters(op.sig)}) {{",
            composite_body(op, table, op.expr),
            "}",
        ]
    return lines


def source_file(ops: list[Op], table: Table) -> str:
    kernels = dict.fromkeys(of_entry(op).declaration for op in ops if op.body == "kernel")
    out = ['#include "autograd/generated.h"', "namespace taeda {"]
    out += (f"namespace kernels {{ {text} }}" for text in kernels)
    for op in ops:
        out += operator_lines(op, table)
    return join_lines(*out, "}  // namespace taeda")
