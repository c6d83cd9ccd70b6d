"""C++ of the operators by file: each entry's device function, dispatch table and entry functions.

The public overloads and Tensor methods call ``op::IDENT``. A dispatched operator's wraps dimensions,
collects keys and jumps through a constant table; its device function checks the contract, allocates
and launches. A composite's is its translated ``expr``. In-place and out= forms stand beside it.
"""

from __future__ import annotations

from . import records
from .cpp import Table, composite_body
from .device import contract_lines, device_function, is_native, wrap_lines
from .headers import source
from .op import Op
from .saved import Saved
from .text import block


def source_file(ops: list[Op], table: Table) -> str:
    kernels = [op.source for op in ops if op.body == "kernel"]
    lines = [f"TD_KERNEL({name})" for name in dict.fromkeys(kernels)]
    lines += [line for op in ops for line in operator_lines(op, table)]
    includes = ["autograd/generated.h", "kernels/launch.h", "ops/forms.h", "ops/native.h"]
    if any(op.matrices or op.column_major or op.strides for op in ops):
        includes.append("ops/layouts.h")
    if any("_by_device(" in line for line in lines):
        includes.append("ops/device_bounds.h")
    return source(table, ops, includes, lines)


def operator_lines(op: Op, table: Table) -> list[str]:
    lines = [f"// {op.sig.text}", records.declaration(op)]
    lines += (dispatched_lines if op.dispatched else composite_lines)(op, table)
    lines += copied_variants(op) if op.body != "pointwise" else []
    lines += records.record_lines(op)
    if op.expr and op.is_replayed:
        head = f"{op.result} definition::{op.ident}({op.parameters})"
        checks = contract_lines(op, table) if op.body == "expr" else []
        lines += block(head, checks, composite_body(op, table, op.expr))
    return lines


# --- composites ---


def composite_lines(op: Op, table: Table) -> list[str]:
    result, params, args = op.result, op.parameters, op.names
    composite = f"composite_{op.ident}"
    keys = "dispatch::composite_keys()"
    if records.makes_its_result(op):
        keys = f"dispatch::leaf_keys({keys_expression(op)})"
    elif op.seen_whole:
        keys = "dispatch::whole_keys()"
    body = [f"return impl::{op.implementation}({args});"]
    if op.body == "expr":
        body = composite_body(op, table, op.source)
    # The record points at it too: inlined into the entry function it would be there twice.
    head = f"[[gnu::noinline]] static {result} {composite}({params})"
    return [
        *block(head, wrap_lines(op, table), contract_lines(op, table), body),
        *block(
            f"{result} op::{op.ident}({params})",
            f"if (const KeySet keys = {keys}; !keys.empty()) [[unlikely]]",
            f"  return dispatch::stopped<{result}>(record::{op.ident}, {op.internal_names()});",
            f"return {composite}({args});",
        ),
    ]


# --- dispatched operators ---


def keys_expression(op: Op) -> str:
    return " | ".join(f"dispatch::keys({a.name})" for a in op.sig.tensors) or "KeySet(Key::kCPU)"


def dispatched_lines(op: Op, table: Table) -> list[str]:
    """The handlers of devices, the constant table, redispatch, op::IDENT and its variants."""
    ident, loops = op.ident, op.loops.values() if op.body == "pointwise" else []
    lines = [*(f"const DenseTable& dense_{loop}();" for loop in loops), *device_function(op, table)]
    # One handler a key, in the order of the keys: generic ones share one.
    device, meta, layers = f"device_{ident}", f"device_{ident}", ["nullptr", "nullptr"]
    if op.host == "sizes":  # the result's sizes depend on data
        meta = f"meta_{ident}"
        head = f"[[gnu::cold]] static {op.result} {meta}({op.internal_parameters})"
        lines += block(head, f'contract::fail_sizes("{op.name}");')
    runs = "native" if is_native(op, "cuda") else "handler"
    plain = runs == "native" and not op.launched
    cuda = device if plain else f"fallback::{runs}<record::{ident}, {device}>"
    modes, given = f"dispatch::modes<record::{ident}>", keys_expression(op)
    keys, below = f"dispatch::effective({given})", " - kDifferentiationKeys"
    if op.grad != {} or op.mutates or op.view or "inplace" in op.variants:
        below, layers = "", [f"autograd_layer::{ident}", f"forward_layer::{ident}"]
    row = ", ".join([device, meta, cuda, *[modes] * 6, *layers, *[modes] * 3])
    head = f"{op.result} op::{ident}({op.parameters})"
    lines += [
        f"using {ident}_fn = {op.result} (*)({op.internal_parameters});",
        f"static constinit {ident}_fn table_{ident}[kNumKeys] = {{{row}}};",
        *block(
            f"{op.result} redispatch::{ident}({op.internal_parameters})",
            f"return table_{ident}[(keys{below}).highest()]({op.internal_names(f'keys{below}')});",
        ),
        *_entry(op, table, head, f"{keys}{below}", "Tensor()"),
    ]
    if op.writes_into:
        head = f"Tensor op::{ident}_inplace({op.parameters})"
        lines += _entry(op, table, head, keys, op.sig.args[0].name)
    if loops and "out" in op.variants:
        head = f"Tensor op::{ident}_out({op.out_parameters})"
        tensors = ", ".join(["out", *(a.name for a in op.sig.tensor_args)])
        check = f'dispatch::check_out("{op.name}", {tensors});'
        lines += _entry(op, table, head, f"dispatch::effective({given}, out)", "out", check)
    return lines


def _entry(op: Op, table: Table, head: str, keys: str, into: str, *checks: str) -> list[str]:
    """An entry function: jumps through the table, `into` being what a pointwise operator writes."""
    jump = f"return table_{op.ident}[keys.highest()]({op.internal_names(into=into)});"
    return block(head, wrap_lines(op, table), checks, f"const KeySet keys = {keys};", jump)


# --- in-place and out= forms of operators without a writing form: compute, then copy ---


def copied_variants(op: Op) -> list[str]:
    lines = []
    if "inplace" in op.variants:
        ruled = {op.autocast, op.autocast_cuda} - {"no_rule", ""}
        pause = ["const autocast::Pause outside;"] if ruled else []
        head = f"Tensor op::{op.ident}_inplace({op.parameters})"
        lines += block(head, pause, f"return {_written_inplace(op)};")
    if "out" in op.variants:
        outs = ", ".join(f"&{out}" for out in op.outs)
        given = ", ".join(filter(None, [f"record::{op.ident}, {{{outs}}}", op.names]))
        head = f"{op.result} op::{op.ident}_out({op.out_parameters})"
        lines += block(head, f"return forms::out<op::{op.ident}>({given});")
    return lines


def _written_inplace(op: Op) -> str:
    target, *rest = (a.name for a in op.sig.args)
    if op.changes_layout:
        return f'autograd::take_layout("{op.name}_", {target}, op::{op.ident}({op.names}))'
    read = target
    # Backward may read the values of the first argument, as they were before the call.
    if not op.dispatched or op.sig.args[0] in Saved(op).args:
        read = f"autograd::read_before_write({', '.join(a.name for a in op.sig.tensors)})"
    return f'write_inplace("{op.name}_", {target}, op::{op.ident}({", ".join([read, *rest])}))'
