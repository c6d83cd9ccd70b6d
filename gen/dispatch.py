"""Dispatch tables and entry functions: op::NAME, its in-place and out= forms."""

from __future__ import annotations

from . import records
from .contract import wrap_lines
from .cpp import internal_names, internal_parameters, names, out_names, parameters
from .fallback import is_native
from .saved import keeps_first_input
from .table import Op


def keys_expression(op: Op) -> str:
    parts = [f"dispatch::keys({a.name})" for a in op.sig.args if a.is_tensor or a.is_tensor_list]
    return " | ".join(parts) if parts else "KeySet(Key::kCPU)"


def devices(op: Op) -> list[str]:
    """The handlers of CPU, meta and CUDA."""
    device = f"device_{op.ident}"
    cuda = device if is_native(op, "cuda") else f"fallback_{op.ident}"
    return [device, f"meta_{op.ident}" if op.host == "sizes" else device, cuda]


def layers(op: Op) -> list[str]:
    """The handlers of autograd and forward mode; none where nothing has a gradient."""
    if op.grad == {} and not op.mutates and not op.view and "inplace" not in op.variants:
        return []
    return [f"autograd_layer::{op.ident}", f"forward_layer::{op.ident}"]


def row(op: Op) -> list[str]:
    """One handler a key, in the order of the keys: generic ones share one."""
    modes = f"modes_{op.ident}"
    own = layers(op) or ["nullptr", "nullptr"]
    return [*devices(op), modes, modes, *own, modes, modes, modes, modes]


def dispatch_lines(op: Op) -> list[str]:
    """The constant table, redispatch, and the entry function op::IDENT with its variants."""
    kind = f"{op.ident}_fn"
    below = "" if layers(op) else " - kDifferentiationKeys"
    handler = f"table_{op.ident}[(keys{below}).highest()]"
    lines = [
        *records.modes_lines(op, internal_parameters(op)),
        f"using {kind} = {op.sig.return_cpp} (*)({internal_parameters(op)});",
        f"static constexpr {kind} table_{op.ident}[kNumKeys] = {{{', '.join(row(op))}}};",
        f"{op.sig.return_cpp} redispatch::{op.ident}({internal_parameters(op)}) {{",
        f"  return {handler}({internal_names(op)});",
        "}",
    ]
    entry_names = internal_names(op, into="Tensor()")
    lines += [
        f"{op.sig.return_cpp} op::{op.ident}({parameters(op.sig)}) {{",
        *("  " + line for line in wrap_lines(op)),
        f"  const KeySet keys = dispatch::effective({keys_expression(op)}){below};",
        f"  return table_{op.ident}[keys.highest()]({entry_names});",
        "}",
    ]
    if op.body == "pointwise":
        if "inplace" in op.variants:
            target = op.sig.args[0].name
            lines += [
                f"Tensor op::{op.ident}_inplace({parameters(op.sig)}) {{",
                *("  " + line for line in wrap_lines(op)),
                f"  const KeySet keys = dispatch::effective({keys_expression(op)});",
                f"  return table_{op.ident}[keys.highest()]({internal_names(op, into=target)});",
                "}",
            ]
        if "out" in op.variants:
            lines += [
                f"Tensor op::{op.ident}_out({parameters(op.sig)}, const Tensor& out) {{",
                *("  " + line for line in wrap_lines(op)),
                f'  dispatch::check_out("{op.name}", out{"".join(", " + a.name for a in op.sig.tensor_args)});',
                f"  const KeySet keys = dispatch::effective({keys_expression(op)}) - kDifferentiationKeys;",
                f"  return table_{op.ident}[keys.highest()]({internal_names(op, into='out')});",
                "}",
            ]
    return lines


def copied_variants(op: Op) -> list[str]:
    """In-place and out= forms of operators without a writing form: compute, then copy."""
    if op.body == "pointwise":
        return []
    lines = []
    pause = ["  const autocast::Pause outside;"] if op.autocast else []
    if "inplace" in op.variants:
        target, call = op.sig.args[0].name, f"op::{op.ident}({names(op.sig)})"
        body = f'write_inplace("{op.name}_", {target}, {call})'
        if op.changes_layout:
            body = f'autograd::take_layout("{op.name}_", {target}, {call})'
        elif keeps_first_input(op):
            tensors = ", ".join(a.name for a in op.sig.args if a.is_tensor or a.is_tensor_list)
            read = f"autograd::read_before_write({tensors})"
            call = f"op::{op.ident}({', '.join([read, *(a.name for a in op.sig.args[1:])])})"
            body = f'write_inplace("{op.name}_", {target}, {call})'
        lines += [
            f"Tensor op::{op.ident}_inplace({parameters(op.sig)}) {{",
            *pause,
            f"  return {body};",
            "}",
        ]
    if "out" in op.variants:
        outs = out_names(op)
        comma = ", " if op.sig.args else ""
        tensors = "".join(", " + a.name for a in op.sig.tensor_args)
        lines += [
            f"{op.sig.return_cpp} op::{op.ident}_out({parameters(op.sig)}{comma}{', '.join(f'const Tensor& {o}' for o in outs)}) {{"
        ]
        for o in outs:
            lines.append(f'  dispatch::check_out("{op.name}", {o}{tensors});')
            if op.apart:
                lines += [
                    f"  dispatch::check_apart(dispatch::Apart::k{op.apart.capitalize()}, {o}, {a.name});"
                    for a in op.sig.args
                    if a.is_tensor or a.is_tensor_list
                ]
        lines += [
            *pause,
            "  const ExcludeKeys no_history(kDifferentiationKeys);",
        ]
        # Factories compute in the dtype of out=, to which they give their size without a word, as
        # PyTorch's do.
        quietly, given = "", names(op.sig)
        if any(a.type == "options" for a in op.sig.args):
            lines += [
                "  TensorOptions like_out = options;",
                f"  if (!like_out.dtype) like_out.dtype = {outs[0]}.dtype();",
            ]
            quietly, given = ", true", given.replace("options", "like_out")
        lines.append(f"  const auto made = op::{op.ident}({given});")
        if len(outs) == 1:
            lines += [
                f'  write_out("{op.name}", {outs[0]}, made{quietly});',
                f"  return {outs[0]};",
                "}",
            ]
        else:
            for i, o in enumerate(outs):
                lines.append(f'  write_out("{op.name}", {o}, std::get<{i}>(made));')
            lines += [f"  return {{{', '.join(outs)}}};", "}"]
    return lines
