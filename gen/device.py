"""Device functions: contract, shapes, allocation, launch of one operator.

They serve every device that has the kernels that the operator launches (some launch none), and
meta, where nothing is launched; other devices leave it to the CPU (ops/fallback.h). A device has the
kernels that its folder's files define; ``kernels::NAME`` is the one of the first View's device
(kernels/launch.h). The contract are the checks in front, of an ``expr`` in its definition.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .cpp import ERRORS, Table
from .op import Op
from .schema import Argument
from .text import block, enumerator, quoted, several

KERNELS = Path(__file__).resolve().parent.parent / "src" / "kernels"


@cache
def defined(folder: Path) -> set[str]:
    """The names of a device's kernels, which its launchers define."""
    texts = (file.read_text() for file in folder.glob("*.cc"))
    return {name for text in texts for name in re.findall(r"^void (\w+)\(", text, re.M)}


def is_native(op: Op, device: str) -> bool:
    """Whether a device runs the operator itself; what only reads elements on the host does not."""
    return bool(op.kernels or not op.host) and defined(KERNELS / device).issuperset(op.launched)


def device_function(op: Op, table: Table) -> list[str]:
    head = f"static {op.result} device_{op.ident}([[maybe_unused]] {op.internal_parameters})"
    body = {"pointwise": _pointwise_body, "kernel": _kernel_body}.get(op.body, _hand_written_body)
    return block(head, contract_lines(op, table) if op.body != "expr" else [], body(op, table))


def _hand_written_body(op: Op, table: Table) -> list[str]:
    call = f"{'definition' if op.body == 'expr' else 'impl'}::{op.implementation}({op.names})"
    guard = "const ExcludeKeys below(KeySet(Key::kAutograd) | Key::kForward);"
    if op.mutates:
        target = op.sig.args[0].name
        return [guard, f"contract::written({target}, [&] {{ {call}; }});", f"return {target};"]
    if op.view and op.grad != {}:
        made = f"auto result = [&] {{ {guard} return {call}; }}();"
        return [made, f"autograd::track_view(result, {op.sig.args[0].name});", "return result;"]
    return [guard, f"return {call};"]


def _pointwise_body(op: Op, table: Table) -> list[str]:
    inputs = ", ".join(f"&{a.name}" for a in op.sig.tensor_args)
    info = [f'"{op.name}"', op.type_mask, f"pointwise::Promote::{enumerator(op.promote)}"]
    if op.out_dtype != "castable":
        info.append(f"OutDtype::{enumerator(op.out_dtype)}")
    info += [f"pointwise::Layout::{enumerator(s)}" for s in op.strides.values()]
    if op.overlap == "itself":
        info.append("pointwise::SelfOverlap::kWarned")
    lines = [f"static constexpr pointwise::Info info{{{', '.join(info)}}};"]
    lines.append(f"const Tensor* const inputs[] = {{{inputs}}};")
    if op.params:
        fields = " ".join(f"{a.stored_type} {a.name};" for a in op.params)
        values = ", ".join(a.name for a in op.params)
        lines.append(f"const struct {{ {fields} }} functor{{{values}}};")
    functor = "&functor" if op.params else "nullptr"
    run = f"return pointwise::run(info, dense_{{}}(), into, inputs, {functor});".format
    runs = {choice: run(loop) for choice, loop in op.loops.items()}
    if (chooser := op.selector) is None:
        return [*lines, *runs.values()]
    lines += [f'if ({chooser.name} == "{value}") {text}' for value, text in runs.items()]
    options = " or ".join(f"'{v}'" for v in runs)
    message = f"{op.name}: argument '{chooser.name}' must be {options}, got '{{}}'"
    return [*lines, f'fail(ErrorKind::kRuntime, "{message}", {chooser.name});']


def _kernel_body(op: Op, table: Table) -> list[str]:
    """Allocates the results, except of a kernel that writes its first argument, and launches."""
    t = table.translator(op)
    device = f"{op.sig.first_tensor}.device()"
    lines, views, results = [], [], [op.sig.args[0].name] if op.mutates else []
    for r in [] if op.mutates else op.sig.returns:
        sizes, dtype, *wanted = op.out[r.name]
        strides = [op.strides[r.name]] if r.name in op.strides else []
        values = (t.expression(str(e)).cpp for e in (sizes, *strides, dtype))
        make = "empty_column_major" if r.name in op.column_major else "empty_tensor"
        made = f"{'empty_strided_tensor' if strides else make}({', '.join(values)}, {device})"
        local = f"{r.name}_out" if any(a.name == r.name for a in op.sig.args) else r.name
        given = f"{t.condition(wanted[0])} ? {made} : Tensor()" if wanted else made
        lines.append(f"Tensor {local} = {given};")
        views.append(f"view_of({local})")
        results.append(local)
    result = several(results)
    lines.append(f"if ({device}.is_meta()) return {result};")
    views += [_view(a, op, results[0]) for a in op.sig.args]
    call = f"kernels::{op.source}({', '.join(views)});"
    if op.mutates:
        call = f"contract::written({result}, [&] {{ {call} }});"
    return [*lines, call, f"return {result};"]


def _view(a: Argument, op: Op, result: str) -> str:
    """What the kernel gets for an argument."""
    makers = {"matrix_input": op.matrices, "dense_input": op.contiguous}
    made = next((f"{m}({a.name})" for m, names in makers.items() if a.name in names), a.name)
    made = f"ordered_input({a.name}, {result})" if a.name in op.ordered else made
    return f"view_of({made})" if a.is_tensor else a.name


# --- contracts ---


def contract_lines(op: Op, table: Table) -> list[str]:
    """Checks in front of the device code: definedness, devices, dtypes, then the entry's own."""
    first = op.sig.first_tensor
    lines = [line for a in op.sig.args for line in _argument_lines(op, a, first)]
    # What composites call checks for them.
    unchecked = "any" if op.body == "kernel" or op.kernels else "all"
    if op.body != "pointwise" and op.types not in ("any", unchecked) and first:
        lines.append(f'contract::types("{op.name}", {op.type_mask}, {first}.dtype());')
    if op.mutates and op.dispatched:
        message = quoted(f"{op.name}: the memory of the written-to tensor is read-only")
        lines.append(f"TD_CHECK({op.sig.args[0].name}.storage()->writable(), {message});")
    return lines + check_lines(op, table, op.check)


def check_lines(op: Op, table: Table, checks: list[tuple[str, str]]) -> list[str]:
    t, lines = table.translator(op), []
    for held, message in checks:
        error, _, text = message.partition(":")
        kind, text = (ERRORS[error], text.strip()) if error in ERRORS else ("kRuntime", message)
        lines.append(f"TD_CHECK_AS(ErrorKind::{kind}, {t.condition(held)}, {t.message(text)});")
    return lines


def _argument_lines(op: Op, a: Argument, first: str | None) -> list[str]:
    given = f'"{op.name.removeprefix("functional_")}", "{a.name}"'
    compared = op.devices == "same" and op.body != "pointwise"
    if a.type == "Tensor[]":
        expected = f", {first}.device()" if first else ""
        same = [f"contract::same_device({given}, {a.name}{expected});"]
        defined = f"contract::list_defined({given}, {a.name});"
        return [defined, *(same if compared and op.dispatched else [])]
    if compared and a.is_tensor and first and a.name != first:
        return [f"contract::same_device({given}, {first}.device(), {a.name});"]
    return []


def wrap_lines(op: Op, table: Table) -> list[str]:
    """Definedness of required tensors and wrapping of dims, in the entry function."""
    lines = []
    for a in op.sig.args:
        if a.type == "Tensor":
            lines.append(f'contract::defined("{op.name}", "{a.name}", {a.name});')
        if a.one_for_all:
            each = f"expr::one_for_all({a.name}, {a.repeat})"
            lines += [f"const DimVector {a.name}_each = {each};", f"{a.name} = {a.name}_each;"]
    lines += check_lines(op, table, op.early_check)
    for a in op.sig.args if op.sig.tensors else []:
        ndim = f"contract::rank({op.sig.tensors[0].name})"
        if a.base.name == "dim":
            lines.append(f"{a.name} = contract::wrap_dim({a.name}, {ndim});")
        elif a.base.name == "dims":
            wrapped = f'contract::wrap_dims("{op.name}", {a.name}, {ndim})'
            lines += [f"const auto {a.name}_wrapped = {wrapped};", f"{a.name} = {a.name}_wrapped;"]
    return lines
