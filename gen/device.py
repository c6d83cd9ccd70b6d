"""Device functions: contract, shapes, allocation, launch of one operator.

They serve every device that has what the operator launches, and meta, where nothing is launched.
"""

from __future__ import annotations

from .contract import contract_lines, type_mask
from .cpp import Table, translator
from .op import Op
from .schema import Argument
from .text import block, enumerator, several


def device_function(op: Op, table: Table) -> list[str]:
    head = f"static {op.result} device_{op.ident}([[maybe_unused]] {op.internal_parameters})"
    if op.body == "pointwise":
        body = _pointwise_body(op)
    elif op.body == "kernel":
        body = _kernel_body(op, table)
    else:
        body = _hand_written_body(op)
    return block(head, contract_lines(op, table), body)


def meta_function(op: Op) -> list[str]:
    """The handler of meta where the result's sizes depend on data."""
    head = f"[[gnu::cold]] static {op.result} meta_{op.ident}({op.internal_parameters})"
    return block(head, f'contract::fail_sizes("{op.name}");')


def _hand_written_body(op: Op) -> list[str]:
    call = f"impl::{op.implementation}({op.names})"
    guard = "const ExcludeKeys below(KeySet(Key::kAutograd) | Key::kForward);"
    if op.mutates:
        target = op.sig.args[0].name
        written = f"contract::written({target}, [&] {{ {call}; }});"
        return [guard, written, f"return {target};"]
    if op.view and op.grad != {}:
        return [
            f"auto result = [&] {{ {guard} return {call}; }}();",
            f"autograd::track_view(result, {op.sig.args[0].name});",
            "return result;",
        ]
    return [guard, f"return {call};"]


def _pointwise_body(op: Op) -> list[str]:
    inputs = ", ".join(f"&{a.name}" for a in op.sig.tensor_args)
    promote = f"pointwise::Promote::{enumerator(op.promote)}"
    lines = [
        f'static constexpr pointwise::Info info{{"{op.name}", {type_mask(op)}, {promote}}};',
        f"const Tensor* const inputs[] = {{{inputs}}};",
    ]
    if op.params:
        fields = " ".join(f"{a.stored_type} {a.name};" for a in op.params)
        values = ", ".join(a.name for a in op.params)
        lines.append(f"const struct {{ {fields} }} functor{{{values}}};")
    functor = "&functor" if op.params else "nullptr"

    def run(choice: str) -> str:
        dense = f"dense_{op.loop_name(choice)}()"
        return f"return pointwise::run(info, {dense}, into, inputs, {functor});"

    chooser = op.selector
    if chooser is None:
        return [*lines, run("")]
    given = f"*{chooser.name}" if chooser.optional else chooser.name
    for value in op.functors:
        test = f'{given} == "{value}"'
        if chooser.optional and value == "none":
            test = f"!{chooser.name} || {test}"
        lines.append(f"if ({test}) {run(value)}")
    options = " or ".join(f"'{v}'" for v in op.functors)
    message = f"{op.name}: argument '{chooser.name}' must be {options}, got '{{}}'"
    return [*lines, f'fail(ErrorKind::kRuntime, "{message}", {given});']


def _kernel_body(op: Op, table: Table) -> list[str]:
    """Allocates the results, except of a kernel that writes its first argument, and launches."""
    t = translator(op, table)
    device = _device(op)
    lines, views, results = [], [], [op.sig.args[0].name] if op.mutates else []
    for r in [] if op.mutates else op.sig.returns:
        sizes, dtype, *wanted = op.out[r.name]
        size_and_dtype = (t.expression(str(e)).cpp for e in (sizes, dtype))
        made = f"empty_tensor({', '.join(size_and_dtype)}, {device})"
        local = op.sig.local(r)
        given = f"{t.condition(wanted[0])} ? {made} : Tensor()" if wanted else made
        lines.append(f"Tensor {local} = {given};")
        views.append(f"view_of({local})")
        results.append(local)
    result = several(results)
    lines.append(f"if ({device}.is_meta()) return {result};")
    for a in op.sig.args:
        dense, view = _view(a, a.name in op.contiguous)
        lines += dense
        views.append(view)
    call = f"kernels::{op.source}({', '.join(views)});"
    if op.mutates:
        call = f"contract::written({result}, [&] {{ {call} }});"
    return [*lines, call, f"return {result};"]


def _device(op: Op) -> str:
    """A C++ expression for where the results lie."""
    if op.sig.first_tensor:
        return f"{op.sig.first_tensor}.device()"
    lists = [a.name for a in op.sig.args if a.is_tensor_list]
    return f"{lists[0]}[0].device()" if lists else "Device()"


def _view(a: Argument, contiguous: bool) -> tuple[list[str], str]:
    """What the kernel gets for an argument, and the statements in front of it."""
    if a.is_tensor_list:
        dense = ", true" if contiguous else ""
        return [f"const ViewList {a.name}_views({a.name}{dense});"], f"{a.name}_views.span()"
    if a.is_tensor and contiguous:
        dense = f"const Tensor {a.name}_dense = dense_input({a.name});"
        return [dense], f"view_of({a.name}_dense)"
    return [], f"view_of({a.name})" if a.is_tensor else a.name
