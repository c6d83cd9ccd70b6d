"""Dispatch tables and entry functions: op::NAME, its in-place and out= forms."""

from __future__ import annotations

from . import records
from .contract import wrap_lines
from .cpp import internal_names, internal_parameters, names, out_names, parameters
from .fallback import is_native
from .op import Op
from .saved import keeps_first_input
from .text import block


def keys_expression(op: Op) -> str:
    parts = [f"dispatch::keys({a.name})" for a in op.sig.args if a.is_tensor or a.is_tensor_list]
    return " | ".join(parts) or "KeySet(Key::kCPU)"


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
    return [*devices(op), modes, modes, modes, *own, modes, modes, modes]


def dispatch_lines(op: Op) -> list[str]:
    """The constant table, redispatch, and the entry function op::IDENT with its variants."""
    kind = f"{op.ident}_fn"
    below = "" if layers(op) else " - kDifferentiationKeys"
    passed = internal_names(op, keys=f"keys{below}")
    lines = [
        *records.modes_lines(op, internal_parameters(op)),
        f"using {kind} = {op.sig.return_cpp} (*)({internal_parameters(op)});",
        f"static constexpr {kind} table_{op.ident}[kNumKeys] = {{{', '.join(row(op))}}};",
        *block(
            f"{op.sig.return_cpp} redispatch::{op.ident}({internal_parameters(op)})",
            f"return table_{op.ident}[(keys{below}).highest()]({passed});",
        ),
    ]
    plain = parameters(op.sig)
    lines += _entry(op, f"{op.sig.return_cpp} op::{op.ident}({plain})", below, "Tensor()")
    if op.body == "pointwise" and "inplace" in op.variants:
        lines += _entry(op, f"Tensor op::{op.ident}_inplace({plain})", "", op.sig.args[0].name)
    if op.body == "pointwise" and "out" in op.variants:
        head = f"Tensor op::{op.ident}_out({plain}, const Tensor& out)"
        lines += _entry(op, head, " - kDifferentiationKeys", "out", _check_out(op, "out"))
    return lines


def _entry(op: Op, head: str, keys: str, into: str, *checks: str) -> list[str]:
    """An entry function: jumps through the table, `into` being what a pointwise operator writes."""
    return block(
        head,
        wrap_lines(op),
        checks,
        f"const KeySet keys = dispatch::effective({keys_expression(op)}){keys};",
        f"return table_{op.ident}[keys.highest()]({internal_names(op, into=into)});",
    )


def _check_out(op: Op, out: str) -> str:
    return f'dispatch::check_out("{op.name}", {", ".join([out, *(a.name for a in op.sig.tensor_args)])});'


def copied_variants(op: Op) -> list[str]:
    """In-place and out= forms of operators without a writing form: compute, then copy."""
    if op.body == "pointwise":
        return []
    pause = ["const autocast::Pause outside;"] if op.autocast else []
    lines = []
    if "inplace" in op.variants:
        head = f"Tensor op::{op.ident}_inplace({parameters(op.sig)})"
        lines += block(head, pause, f"return {_written_inplace(op)};")
    if "out" in op.variants:
        outs = [f"const Tensor& {o}" for o in out_names(op)]
        given = ", ".join(filter(None, [parameters(op.sig), *outs]))
        head = f"{op.sig.return_cpp} op::{op.ident}_out({given})"
        lines += block(head, _checked_outs(op), pause, _written_outs(op))
    return lines


def _written_inplace(op: Op) -> str:
    target, *rest = (a.name for a in op.sig.args)
    if op.changes_layout:
        return f'autograd::take_layout("{op.name}_", {target}, op::{op.ident}({names(op.sig)}))'
    read = target
    if keeps_first_input(op):
        tensors = ", ".join(a.name for a in op.sig.args if a.is_tensor or a.is_tensor_list)
        read = f"autograd::read_before_write({tensors})"
    call = f"op::{op.ident}({', '.join([read, *rest])})"
    return f'write_inplace("{op.name}_", {target}, {call})'


def _checked_outs(op: Op) -> list[str]:
    lines = []
    for out in out_names(op):
        lines.append(_check_out(op, out))
        if op.overlap:
            policy = f"dispatch::Overlap::k{op.overlap.capitalize()}"
            lines += [
                f"dispatch::check_overlap({policy}, {out}, {a.name});"
                for a in op.sig.args
                if a.is_tensor or a.is_tensor_list
            ]
    return lines


def _written_outs(op: Op) -> list[str]:
    outs = out_names(op)
    lines = ["const ExcludeKeys no_history(kDifferentiationKeys);"]
    given, quietly = [a.name for a in op.sig.args], ""
    # Factories compute in the dtype of out=, to which they give their size without a word, as
    # PyTorch's do.
    if any(a.type == "options" for a in op.sig.args):
        lines.append("TensorOptions like_out = options;")
        lines.append(f"if (!like_out.dtype) like_out.dtype = {outs[0]}.dtype();")
        given = ["like_out" if a.type == "options" else a.name for a in op.sig.args]
        quietly = ", true"
    lines.append(f"const auto made = op::{op.ident}({', '.join(given)});")
    if len(outs) == 1:
        return [
            *lines,
            f'write_out("{op.name}", {outs[0]}, made{quietly});',
            f"return {outs[0]};",
        ]
    lines += [f'write_out("{op.name}", {o}, std::get<{i}>(made));' for i, o in enumerate(outs)]
    return [*lines, f"return {{{', '.join(outs)}}};"]
