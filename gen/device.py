"""Device functions: contract, shapes, allocation, launch of one operator.

They serve every device that has what the operator launches, and meta, where nothing is launched.
"""

from __future__ import annotations

from .contract import TYPE_MASKS, contract_lines
from .cpp import Table, impl_name, internal_parameters, names, translator
from .table import Op


def device_function(op: Op, table: Table) -> list[str]:
    lines = [
        f"static {op.sig.return_cpp} device_{op.ident}([[maybe_unused]] {internal_parameters(op)}) {{"
    ]
    lines += ["  " + line for line in contract_lines(op, table)]
    if op.body == "pointwise":
        lines += _pointwise_body(op)
    elif op.body == "kernel":
        lines += _kernel_body(op, table)
    else:
        call = f"impl::{impl_name(op)}({names(op.sig)})"
        guard = "  const ExcludeKeys below(KeySet(Key::kAutograd) | Key::kForward);"
        if op.mutates:
            lines += [
                guard,
                f"  contract::written({op.sig.args[0].name}, [&] {{ {call}; }});",
                f"  return {op.sig.args[0].name};",
            ]
        elif op.view and op.grad != {}:
            base = op.sig.args[0].name
            lines += [
                f"  auto result = [&] {{ const ExcludeKeys below(KeySet(Key::kAutograd) | Key::kForward); return {call}; }}();",
                f"  autograd::track_view(result, {base});",
                "  return result;",
            ]
        else:
            lines += [guard, f"  return {call};"]
    return [*lines, "}"]


def meta_function(op: Op) -> list[str]:
    """The handler of meta where the result's sizes depend on data."""
    return [
        f"[[gnu::cold]] static {op.sig.return_cpp} meta_{op.ident}({internal_parameters(op)}) {{",
        f'  contract::fail_sizes("{op.name}");',
        "}",
    ]


def _pointwise_body(op: Op) -> list[str]:
    tensors = op.sig.tensor_args
    inputs = ", ".join(f"&{a.name}" for a in tensors)
    promote = {"same": "kSame", "float": "kFloat", "bool": "kBool", "real": "kReal"}[op.promote]
    lines = [
        f'  static constexpr pointwise::Info info{{"{op.name}", contract::{TYPE_MASKS[op.types]}, pointwise::Promote::{promote}}};',
        f"  const Tensor* const inputs[] = {{{inputs}}};",
    ]
    functor = "nullptr"
    if op.params:
        fields = " ".join(f"{a.stored_type} {a.name};" for a in op.params)
        values = ", ".join(a.name for a in op.params)
        lines.append(f"  const struct {{ {fields} }} functor{{{values}}};")
        functor = "&functor"
    call = "pointwise::run(info, dense_{0}(), into, inputs, " + functor + ")"
    chooser = op.selector
    if chooser is None:
        return [*lines, f"  return {call.format(op.ident)};"]
    for value in op.functors:
        if chooser.optional and value == "none":
            test = f'!{chooser.name} || *{chooser.name} == "none"'
        else:
            test = f'{"*" if chooser.optional else ""}{chooser.name} == "{value}"'
        lines.append(f"  if ({test}) return {call.format(f'{op.ident}_{value}')};")
    options = " or ".join(f"'{v}'" for v in op.functors)
    shown = f"*{chooser.name}" if chooser.optional else chooser.name
    lines.append(
        f"  fail(ErrorKind::kRuntime, \"{op.name}: argument '{chooser.name}' must be {options}, got '{{}}'\", {shown});"
    )
    return lines


def _kernel_body(op: Op, table: Table) -> list[str]:
    lines, views = [], []
    t = translator(op, table)
    device = next((f"{a.name}.device()" for a in op.sig.args if a.type == "Tensor"), None)
    if device is None:
        lists = [a.name for a in op.sig.args if a.is_tensor_list]
        device = f"{lists[0]}[0].device()" if lists else "Device()"
    outputs = []
    if not op.mutates:
        for r in op.sig.returns:
            sizes, dtype = (t.expression(str(e)).cpp for e in op.out[r.name])
            local = op.sig.local(r)
            lines.append(f"  Tensor {local} = empty_tensor({sizes}, {dtype}, {device});")
            outputs.append(local)
            views.append(f"view_of({local})")
    target = op.sig.args[0].name if op.mutates else ""
    if not op.mutates:
        lines.append(f"  if ({device}.is_meta()) return {_tuple(outputs)};")
    else:
        lines.append(f"  if ({device}.is_meta()) return {target};")
    for a in op.sig.args:
        if a.is_tensor_list:
            lines.append(
                f"  const ViewList {a.name}_views({a.name}{', true' if a.name in op.contiguous else ''});"
            )
            views.append(f"{a.name}_views.span()")
        elif a.is_tensor and a.name in op.contiguous:
            lines.append(f"  const Tensor {a.name}_dense = dense_input({a.name});")
            views.append(f"view_of({a.name}_dense)")
        elif a.is_tensor:
            views.append(f"view_of({a.name})")
        else:
            views.append(a.name)
    call = f"kernels::{op.source}({', '.join(views)});"
    if op.mutates:
        lines += [f"  contract::written({target}, [&] {{ {call} }});", f"  return {target};"]
    else:
        lines += [f"  {call}", f"  return {_tuple(outputs)};"]
    return lines


def _tuple(values: list[str]) -> str:
    return values[0] if len(values) == 1 else "{" + ", ".join(values) + "}"
