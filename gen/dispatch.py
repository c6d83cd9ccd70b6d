"""Dispatch tables and entry functions: op::NAME, its in-place and out= forms."""

from __future__ import annotations

from . import records
from .contract import wrap_lines
from .cpp import internal_names, internal_parameters, names, out_names, parameters
from .fallback import is_native
from .op import Op
from .saved import keeps_first_input
from .text import block, several


def keys_expression(op: Op) -> str:
    return " | ".join(f"dispatch::keys({a.name})" for a in op.sig.tensors) or "KeySet(Key::kCPU)"


def _differentiates(op: Op) -> bool:
    """Whether autograd and forward mode have handlers: not where nothing has a gradient."""
    return op.grad != {} or op.mutates or op.view or "inplace" in op.variants


def row(op: Op) -> list[str]:
    """One handler a key, in the order of the keys: generic ones share one."""
    device, modes = f"device_{op.ident}", f"modes_{op.ident}"
    meta = f"meta_{op.ident}" if op.host == "sizes" else device
    cuda = device if is_native(op, "cuda") else f"fallback_{op.ident}"
    layers = ["nullptr", "nullptr"]
    if _differentiates(op):
        layers = [f"autograd_layer::{op.ident}", f"forward_layer::{op.ident}"]
    return [device, meta, cuda, modes, modes, modes, *layers, modes, modes, modes]


def dispatch_lines(op: Op) -> list[str]:
    """The constant table, redispatch, and the entry function op::IDENT with its variants."""
    kind, result, plain = f"{op.ident}_fn", op.sig.return_cpp, parameters(op.sig)
    below = "" if _differentiates(op) else " - kDifferentiationKeys"
    passed = internal_names(op, keys=f"keys{below}")
    lines = [
        *records.modes_lines(op, internal_parameters(op)),
        f"using {kind} = {result} (*)({internal_parameters(op)});",
        f"static constexpr {kind} table_{op.ident}[kNumKeys] = {{{', '.join(row(op))}}};",
        *block(
            f"{result} redispatch::{op.ident}({internal_parameters(op)})",
            f"return table_{op.ident}[(keys{below}).highest()]({passed});",
        ),
        *_entry(op, f"{result} op::{op.ident}({plain})", below, "Tensor()"),
    ]
    if op.writes_into:
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
        read = f"autograd::read_before_write({', '.join(a.name for a in op.sig.tensors)})"
    call = f"op::{op.ident}({', '.join([read, *rest])})"
    return f'write_inplace("{op.name}_", {target}, {call})'


def _checked_outs(op: Op) -> list[str]:
    policy = f"dispatch::Overlap::k{op.overlap.capitalize()}"
    overlapped = op.sig.tensors if op.overlap else []
    return [
        line
        for out in out_names(op)
        for line in [
            _check_out(op, out),
            *(f"dispatch::check_overlap({policy}, {out}, {a.name});" for a in overlapped),
        ]
    ]


def _written_outs(op: Op) -> list[str]:
    outs, args = out_names(op), names(op.sig)
    lines, quietly = ["const ExcludeKeys no_history(kDifferentiationKeys);"], ""
    # Factories compute in the dtype of out=, to which they give its size without a word, as
    # PyTorch's do.
    if op.is_factory:
        lines.append("TensorOptions like_out = options;")
        lines.append(f"if (!like_out.dtype) like_out.dtype = {outs[0]}.dtype();")
        args = names(op.sig, options="like_out")
        quietly = ", true"
    lines.append(f"const auto made = op::{op.ident}({args});")
    made = op.sig.parts("made")
    lines += [f'write_out("{op.name}", {o}, {m}{quietly});' for o, m in zip(outs, made)]
    return [*lines, f"return {several(outs)};"]
