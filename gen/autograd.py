"""The layers of autograd and of forward mode, and what dual numbers add; nodes.py has the nodes."""

from __future__ import annotations

from collections.abc import Iterator

from .cpp import Table, one_pass
from .headers import source
from .nodes import BackwardNode, node_name
from .op import Op
from .saved import reads
from .schema import parse
from .text import block
from .values import Value


def add_dual_operators(ops: list[Op]) -> list[Op]:
    """Entries for the gradients of pointwise functors that dual numbers compute.

    ``softplus`` gets ``softplus_grad0(gy, self, ...)``: gy times the partial derivative, in one
    pass, for backward that is not differentiated further; elsewhere the formula of ``grad`` is used.
    """
    return [one for op in ops for one in [op, *(_dual_operators(op) if op.dual else ())]]


def _dual_operators(op: Op) -> Iterator[Op]:
    tensors = op.sig.tensor_args
    scalars = [a for a in op.sig.args if not a.is_tensor]
    args = ["Tensor gy", *(f"{a.type} {a.name}" for a in tensors), *(["*"] if scalars else [])]
    args += [f"{a.type} {a.name}" + (f"={a.default}" if a.default else "") for a in scalars]
    given = ", ".join([*(a.name for a in tensors), *(f"{a.name}={a.name}" for a in scalars)])
    dot = f".{op.sig.overload}" if op.sig.overload else ""
    for i, arg in enumerate(tensors):
        named = op.dual not in (True, "seen") and i == 0
        name = str(op.dual) if named else f"{op.name}_grad{i}"
        if arg.name in (op.grad or {}):
            op.dual_grad[arg.name] = f"{name}(gy, {given})"
        yield Op(
            parse(f"{name}{dot}({', '.join(args)}) -> Tensor"),
            op.file,
            op.line,
            "pointwise",
            op.source,
            aten={"default": ""} if named else None,
            partial=i,
            types="inexact" if op.types in ("any", "all", "numeric", "inexact") else "floating",
            grad={},
            jvp="none",
            optimize=op.optimize,
            sparse="values" if op.sparse == "values" else None,
        )


def source_file(ops: list[Op], table: Table) -> str:
    includes = ["autograd/generated.h", "autograd/layer.h"]
    includes += ["autograd/differentiated.h"] if any(op.dual_grad for op in ops) else []
    lines: list[str] = []
    for op in ops:
        node = BackwardNode(op, table)
        lines.append(f"// {op.sig.text}")
        if node.edges:
            lines += ["namespace {", *node.declaration(), *node.apply(), "}  // namespace"]
        lines += [*backward_lines(op, node, table), *forward_lines(op, table)]
    return source(table, ops, includes, lines)


def backward_lines(op: Op, node: BackwardNode, table: Table) -> list[str]:
    """autograd_layer::IDENT: records a node when gradients are wanted, then calls below."""
    head = f"{op.result} autograd_layer::{op.ident}([[maybe_unused]] {op.internal_parameters})"
    if op.grad == {} and (op.view or not op.may_write):
        passed = op.internal_names("keys - KeySet(Key::kAutograd)")
        return block(head, f"return redispatch::{op.ident}({passed});")
    first = op.sig.args[0].name
    # The tensors that make a node necessary if one of them requires a gradient. Where a call only
    # overwrites, the old history is not that of the new values.
    needy = op.sig.args[:1] + node.edges if op.may_write and node.edges else node.edges
    needy = op.sig.tensors if op.may_write and op.grad == {} else needy
    wanted = ", ".join(dict.fromkeys(a.name for a in needy))
    needs = f"needs_grad({wanted})" if wanted else "false"
    if op.grad == {} and op.promote == "bool":  # a new result is bool and has no gradient
        needs = f"into.defined() && into.is_same({first}) && {needs}"
    lines = [f"const bool needs = {needs};"]
    if op.mutates:
        lines.append(f'autograd::check_inplace("{op.name}", {first}, needs);')
    elif op.writes_into:
        lines.append(f'if (into.defined()) autograd::check_inplace("{op.name}_", into, needs);')
    lines.append(f"if (!needs) return {_below(op)};")
    if op.grad != {} or op.view:
        return block(head, lines, _recorded(op, node))
    # Truth values are constant almost everywhere; of other results the derivative is missing.
    made = f'not_differentiable_node("{op.name}"'
    if op.promote == "bool":
        made = f'zero_gradient_node("{node_name(op, table)}"'
    lines.append(f"const Ref<Node> node = autograd::{made}, autograd::edges({wanted}));")
    lines.append(f"return autograd::not_differentiable_inplace(node, {_below(op)});")
    return block(head, lines)


def _below(op: Op, recorded: bool = False) -> str:
    """The call below, under which nothing is recorded, whatever keys it collects."""
    passed = op.internal_names("keys - KeySet(Key::kAutograd)", recorded=recorded)
    guard = "const ExcludeKeys below(KeySet(Key::kAutograd));"
    return f"[&] {{ {guard} return redispatch::{op.ident}({passed}); }}()"


def _recorded(op: Op, node: BackwardNode) -> list[str]:
    """Makes the node and fills it, before and after the call."""
    history = ["rebase_history(made, node);" if op.mutates else "set_history(made, node);"]
    if op.writes_into:
        history = ["if (into.defined()) rebase_history(made, node);", f"else {history[0]}"]
    return [
        f"const Ref<{node.name}> node = make_ref<{node.name}>();",
        f"autograd::set_edges({', '.join(['*node', *(a.name for a in node.edges)])});",
        *(f"node->{a.name}_count = {a.name}.size();" for a in node.edges if a.is_tensor_list),
        *node.before,
        f"auto made = {_below(op, recorded=True)};",
        *history,
        *node.after,
        "return made;",
    ]


# --- forward mode ---

# What is computed inside has no tangents of this level; it may have tangents of lower ones.
GUARD = "const autograd::BelowLevel values_only(level);"


def forward_lines(op: Op, table: Table) -> list[str]:
    """forward_layer::IDENT: computes the result below and its tangent beside it.

    The tangent (Jacobian times the arguments' tangents) comes from, in this order: the definition in
    ``expr``, the entry's ``jvp`` (a formula in ``NAME_t``, or "linear": the operator itself on the
    tangent), or the ``grad`` formulas of a pointwise operator, whose Jacobian is diagonal. Where none
    of them applies the layer raises.
    """
    head = f"{op.result} forward_layer::{op.ident}([[maybe_unused]] {op.internal_parameters})"
    if op.replays_forward:
        return block(head, f"return definition::{op.ident}({op.names});")
    read = ", ".join([*(a.name for a in op.sig.tensors), *op.into])
    return block(head, f"const uint64_t level = autograd::top_level({read});", _body(op, table))


def _body(op: Op, table: Table) -> list[str]:
    passed = op.internal_names(keys="keys - thread_modes.excluded", recorded=True)
    below = f"[&] {{ {GUARD} return redispatch::{op.ident}({passed}); }}()"
    made = f"{op.result} made = {below};"
    if op.grad == {}:
        if not op.may_write:
            return [f"return {below};"]
        # What is written has a derivative of zero, whatever it was before.
        written = "made" if op.mutates else "into"
        return [made, f"if (level != 0) autograd::clear_tangents({written});", "return made;"]
    tangents = _tangents(op, table)
    if not tangents:
        return [f'if (level != 0) autograd::fail_no_forward_rule("{op.name}");', f"return {below};"]
    lines = _unpacked(op)
    if op.may_write and "result" not in _names_in_rule(op):  # writing destroys what the rule reads
        lines += [*tangents["made"], made, "autograd::set_tangent(made, tangent, level);"]
    else:
        lines.append(made)
        for part, rule in tangents.items():
            lines += block("", rule, f"autograd::set_tangent({part}, tangent, level);")
    return [*lines, "return made;"]


def _unpacked(op: Op) -> list[str]:
    """NAME_t, each tensor argument's tangent; NAME_p, the value of one that the call writes over
    and the rule reads, later or in backward."""
    lines, read = [], _names_in_rule(op)
    for a in op.sig.tensors:
        function = "tangent" if a.is_tensor else "tangents_or_zeros"
        tangent = f"autograd::{function}({a.name}, level)"
        written = op.overwritten(a.name)
        if written and f"{a.name}_t" in read:
            tangent = f"autograd::kept({tangent}, {written})"
        lines.append(f"[[maybe_unused]] const {a.base.owner} {a.name}_t = {tangent};")
        if written and a.name in read:
            lines.append(f"const Tensor {a.name}_p = autograd::kept({a.name}, {written});")
    return lines


def _names_in_rule(op: Op) -> set[str]:
    """What the tangent is computed from: NAME for an argument's values, NAME_t for its tangent."""
    if op.jvp == "linear" or op.view:
        return set()
    given = op.jvp if isinstance(op.jvp, dict) else {}
    if given and not given.keys() <= {name for names, _ in op.gradient_groups for name in names}:
        return set().union(*map(reads, given.values()))
    texts = [given.get(n[0], text) for n, text in op.gradient_groups] + [*op.dual_grad.values()]
    return {f"{name}_t" for name in op.differentiated}.union(*map(reads, texts))


def _tangents(op: Op, table: Table) -> dict[str, list[str]]:
    """C++ of each result that has one -> statements that define ``tangent``."""
    results = dict(zip((r.name for r in op.sig.returns), op.sig.parts("made")))
    env = {name: Value(part, "T") for name, part in results.items()}
    for a in op.sig.args:
        copied = op.overwritten(a.name) and a.name in _names_in_rule(op)
        env[a.name] = Value(f"{a.name}_p" if copied else a.name, a.expr_type)
        if a in op.sig.tensors:
            env[f"{a.name}_t"] = Value(f"{a.name}_t", a.expr_type)
    if isinstance(op.jvp, dict) and op.jvp.keys() <= results.keys():
        return {results[name]: _formula(op, env, table, rule) for name, rule in op.jvp.items()}
    if op.jvp == "none" or len(results) > 1 or (op.returns_list and not op.view):
        return {}
    if op.jvp == "linear" or (op.view and op.jvp is None):
        return {"made": _linear(op)}
    return {"made": _diagonal(op, env, table)} if op.body == "pointwise" else {}


def _linear(op: Op) -> list[str]:
    first = op.sig.tensors[0]
    args = ", ".join(f"{a.name}_t" if a is first else a.name for a in op.sig.args)
    given = f"{first.name}_t.defined()"
    if first.is_tensor_list:
        given = f"autograd::any_tangent({first.name}, level)"
    return [
        f"{op.result} tangent;",
        f"if ({given}) {{ {GUARD} tangent = op::{op.ident}({args}); }}",
    ]


def _formula(op: Op, env: dict[str, Value], table: Table, rule: str) -> list[str]:
    """The entry's own formula; a missing tangent that it reads counts as zeros."""
    env, lines = dict(env), []
    for a in op.sig.tensor_args:
        if f"{a.name}_t" in reads(rule):
            given = f"{a.name}_t.defined() || !{a.name}.defined()"
            table.called.add("zeros_like")
            zeros = f"op::zeros_like({env[a.name].cpp}, {{}}, {{}})"
            lines.append(f"const Tensor {a.name}_tz = {given} ? {a.name}_t : {zeros};")
            env[f"{a.name}_t"] = Value(f"{a.name}_tz", "T")
    text = table.translator(op, "jvp of ", env).expression(rule).cpp
    return [*lines, "Tensor tangent;", f"{{ {GUARD} tangent = {text}; }}"]


def _diagonal(op: Op, env: dict[str, Value], table: Table) -> list[str]:
    """Each gradient formula with the tangent in the gradient's place.

    For a function of z with the derivative d the gradient is gy * d.conj(), the tangent t * d: the
    formula, or that in ``jvp``, between conjugations; for a function of z.conj() as it stands.
    """
    t = table.translator(op, "jvp of ", env | {"gy": Value("gy", "T")})
    lines = [GUARD]
    for (name, *_), text in op.gradient_groups:
        value = t.expression(op.jvp.get(name, text) if op.jvp else text)
        if op.dual_grad:
            value = one_pass(op, value, t.expression(op.dual_grad[name]), t)
        conjugate = "" if name in op.antiholomorphic else "autograd::conjugate"
        lines.append(
            f"if ({name}_t.defined()) {{ const Tensor gy = {conjugate}({name}_t); "
            f"tangent = autograd::sum_tangents(tangent, {conjugate}({value.cpp})); }}"
        )
    return ["Tensor tangent;", *block("", lines)]
