"""The autograd layer of every dispatched operator, and the operators that dual numbers add.

Backward nodes are in nodes.py, forward mode, from the same sources, in forward.py.
"""

from __future__ import annotations

from . import forward
from .cpp import Table
from .headers import source
from .nodes import BackwardNode, node_name
from .op import Op
from .schema import parse
from .text import block


def add_dual_operators(ops: list[Op]) -> list[Op]:
    """Entries for the gradients of pointwise functors that dual numbers compute.

    ``softplus`` gets ``softplus_grad0(gy, self, ...)``: gy times the partial derivative, in one
    pass. Backward calls it where nothing differentiates the gradient further, and the formula of
    ``grad`` elsewhere.
    """
    out = list(ops)
    for op in ops:
        if op.dual:
            out += _dual_operators(op)
    return out


def _dual_operators(op: Op) -> list[Op]:
    tensors = op.sig.tensor_args
    scalars = [a for a in op.sig.args if not a.is_tensor]
    args = ["Tensor gy", *(f"{a.type} {a.name}" for a in tensors), *(["*"] if scalars else [])]
    args += [f"{a.type} {a.name}" + (f"={a.default}" if a.default else "") for a in scalars]
    given = ", ".join([*(a.name for a in tensors), *(f"{a.name}={a.name}" for a in scalars)])
    dot = f".{op.sig.overload}" if op.sig.overload else ""
    derived, calls = [], {}
    for i, arg in enumerate(tensors):
        named = isinstance(op.dual, str) and i == 0
        name = str(op.dual) if named else f"{op.name}_grad{i}"
        entry = Op(
            parse(f"{name}{dot}({', '.join(args)}) -> Tensor"),
            op.file,
            op.line,
            "pointwise",
            op.source,
            aten=["default"] if named else None,
            partial=i,
            types="inexact" if op.types in ("any", "all", "numeric", "inexact") else "floating",
            grad={},
            jvp="none",
            optimize=op.optimize,
        )
        derived.append(entry)
        calls[arg.name] = f"{name}(gy, {given})"
    op.dual_grad = {name: calls[name] for name in op.grad or {}}
    return derived


def source_file(ops: list[Op], table: Table) -> str:
    includes = ["autograd/generated.h", "autograd/layer.h"]
    if any(op.dual_grad for op in ops):
        includes.append("autograd/differentiated.h")
    lines: list[str] = []
    for op in ops:
        node = BackwardNode(op, table)
        lines.append(f"// {op.sig.text}")
        if node.edges:
            lines += ["namespace {", *node.declaration(), *node.apply(), "}  // namespace"]
        lines += [*layer_lines(op, node, table), *forward.layer_lines(op, table)]
    return source(table, ops, includes, lines)


def layer_lines(op: Op, node: BackwardNode, table: Table) -> list[str]:
    """autograd_layer::IDENT: records a node when gradients are wanted, then calls below."""
    head = f"{op.result} autograd_layer::{op.ident}([[maybe_unused]] {op.internal_parameters})"
    if op.grad == {} and not (op.may_write and not op.view):
        return block(head, f"return {_below(op)};")
    wanted, first = _wanted(op, node), op.sig.args[0].name
    needs = f"needs_grad({wanted})" if wanted else "false"
    if op.grad == {} and op.promote == "bool":  # a new result is bool and has no gradient
        needs = f"into.defined() && into.is_same({first}) && {needs}"
    lines = [f"const bool needs = {needs};"]
    if op.mutates:
        lines.append(f'autograd::check_inplace("{op.name}", {first}, needs);')
    elif op.writes_into:
        lines.append(f'if (into.defined()) autograd::check_inplace("{op.name}_", into, needs);')
    lines.append(f"if (!needs) return {_guarded(op)};")
    if op.grad != {} or op.view:
        lines += _recorded(op, node)
    elif op.may_write:
        lines.append(f"const Ref<Node> node = {_node_without_formula(op, wanted, table)};")
        lines.append(f"return autograd::not_differentiable_inplace(node, {_guarded(op)});")
    return block(head, lines)


def _below(op: Op, recorded: bool = False) -> str:
    passed = op.internal_names(keys="keys - KeySet(Key::kAutograd)", recorded=recorded)
    return f"redispatch::{op.ident}({passed})"


def _guarded(op: Op, recorded: bool = False) -> str:
    """The call below, under which nothing is recorded, whatever keys it collects."""
    guard = "const ExcludeKeys below(KeySet(Key::kAutograd));"
    return f"[&] {{ {guard} return {_below(op, recorded)}; }}()"


def _wanted(op: Op, node: BackwardNode) -> str:
    """The tensors that make a node necessary if one of them requires a gradient."""
    if op.may_write and op.grad == {}:  # the old history is not that of the new values
        return ", ".join(a.name for a in op.sig.tensors)
    names = [a.name for a in node.edges]
    first = [op.sig.args[0].name] if op.may_write and names else []
    return ", ".join(dict.fromkeys([*first, *names]))


def _recorded(op: Op, node: BackwardNode) -> list[str]:
    """Makes the node and fills it, before and after the call."""
    kind = "auto" if len(op.sig.returns) > 1 else op.result
    return [
        f"const Ref<{node.name}> node = make_ref<{node.name}>();",
        f"autograd::set_edges({', '.join(['*node', *(a.name for a in node.edges)])});",
        *(f"node->{a.name}_count = {a.name}.size();" for a in node.edges if a.is_tensor_list),
        *node.fill(after=False),
        f"{kind} made = {_guarded(op, recorded=True)};",
        *_history_lines(op),
        *node.fill(after=True),
        "return made;",
    ]


def _node_without_formula(op: Op, wanted: str, table: Table) -> str:
    """Truth values are constant almost everywhere; of other results the derivative is missing."""
    if op.promote == "bool":
        return f'autograd::zero_gradient_node("{node_name(op, table)}", autograd::edges({wanted}))'
    return f'autograd::not_differentiable_node("{op.name}", autograd::edges({wanted}))'


def _history_lines(op: Op) -> list[str]:
    if op.mutates:
        return ["rebase_history(made, node);"]
    if op.writes_into:
        return ["if (into.defined()) rebase_history(made, node);", "else set_history(made, node);"]
    return ["set_history(made, node);"]
