"""The forward-mode layer: beside each result, its tangent (Jacobian times the arguments' tangents).

A tangent comes from, in this order: the entry's ``jvp`` (a formula in ``NAME_t``, or "linear": the
operator itself on the tangent), the definition in ``expr``, or the ``grad`` formulas of a pointwise
operator, whose Jacobian is diagonal. Where none of them applies the layer raises.
"""

from __future__ import annotations

from .cpp import Table, one_pass, translator
from .op import Op
from .saved import names_used
from .text import block
from .values import Value

# What is computed inside has no tangents of this level; it may have tangents of lower ones.
GUARD = "const autograd::BelowLevel values_only(level);"


def layer_lines(op: Op, table: Table) -> list[str]:
    """forward_layer::IDENT: computes the result below and its tangent beside it."""
    head = f"{op.result} forward_layer::{op.ident}"
    return block(f"{head}([[maybe_unused]] {op.internal_parameters})", _body(op, table))


def _body(op: Op, table: Table) -> list[str]:
    passed = op.internal_names(keys="keys - thread_modes.excluded", recorded=True)
    call = f"redispatch::{op.ident}({passed})"
    below = f"[&] {{ {GUARD} return {call}; }}()"
    if op.replays_forward:
        return [f"return definition::{op.ident}({op.names});"]
    read = ", ".join([*(a.name for a in op.sig.tensors), *op.into])
    level = f"const uint64_t level = autograd::top_level({read});"
    if op.grad == {}:
        return [level, *_without_derivative(op, below)]
    if isinstance(op.jvp, dict):
        return [level, *_several(op, table, below)]
    tangent = _tangent_lines(op, table)
    one = _has_one_tensor(op) or (op.view and op.returns_list)
    if not one or op.jvp == "none" or tangent is None:
        missing = f'if (level != 0) autograd::fail_no_forward_rule("{op.name}");'
        return [level, missing, f"return {below};"]
    beside = ["autograd::set_tangent(made, tangent, level);", "return made;"]
    return [level, *_unpacked(op), *_ordered(op, below, tangent), *beside]


def _has_one_tensor(op: Op) -> bool:
    return len(op.sig.returns) == 1 and op.sig.returns[0].type == "Tensor"


def _without_derivative(op: Op, below: str) -> list[str]:
    """What is written has a derivative of zero, whatever it was before."""
    if not op.may_write:
        return [f"return {below};"]
    written = f"if (level != 0) autograd::clear_tangents({'made' if op.mutates else 'into'});"
    return [f"{op.result} made = {below};", written, "return made;"]


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


def _ordered(op: Op, below: str, tangent: list[str]) -> list[str]:
    """The result and the tangent; the tangent first where writing the result destroys its inputs."""
    made = f"{op.result} made = {below};"
    first = op.may_write and "result" not in _names_in_rule(op)
    return [*tangent, made] if first else [made, *tangent]


def _names_in_rule(op: Op) -> set[str]:
    """What the tangent is computed from: NAME for an argument's values, NAME_t for its tangent."""
    if op.jvp == "linear" or op.view:
        return set()
    if isinstance(op.jvp, str):
        return names_used(op.jvp)
    groups = op.gradient_groups
    tangents = {f"{name}_t" for targets, _ in groups for name in targets}
    texts = [*(text for _, text in groups), *op.dual_grad.values()]
    return tangents.union(*(names_used(text) for text in texts))


def _tangent_lines(op: Op, table: Table) -> list[str] | None:
    """Statements that define ``tangent``; None where no rule exists."""
    if op.jvp == "linear" or (op.view and op.jvp is None):
        return _linear(op)
    if isinstance(op.jvp, str) and op.jvp not in ("none", "replay"):
        return _formula(op, _environment(op), table, op.jvp)
    return _diagonal(op, table) if op.body == "pointwise" and _has_one_tensor(op) else None


def _several(op: Op, table: Table, below: str) -> list[str]:
    """Several results, those that have tangents with a formula each."""
    made = dict(zip((r.name for r in op.sig.returns), op.sig.parts("made")))
    env = _environment(op) | {name: Value(part, "T") for name, part in made.items()}
    lines = [*_unpacked(op), f"{op.result} made = {below};"]
    for name, part in made.items():
        if name in op.jvp:
            beside = f"autograd::set_tangent({part}, tangent, level);"
            lines += block("", _formula(op, env, table, op.jvp[name]), beside)
    return [*lines, "return made;"]


def _environment(op: Op) -> dict[str, Value]:
    env = {"result": Value("made", "T")} | {a.name: Value(a.name, a.expr_type) for a in op.sig.args}
    for a in op.sig.tensors:
        if op.overwritten(a.name) and a.name in _names_in_rule(op):
            env[a.name] = Value(f"{a.name}_p", a.expr_type)
        env[f"{a.name}_t"] = Value(f"{a.name}_t", a.expr_type)
    return env


def _linear(op: Op) -> list[str]:
    first = op.sig.tensors[0]
    args = ", ".join(f"{first.name}_t" if a.name == first.name else a.name for a in op.sig.args)
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
        if f"{a.name}_t" in names_used(rule):
            given = f"{a.name}_t.defined() || !{a.name}.defined()"
            table.called.add("zeros_like")
            zeros = f"op::zeros_like({env[a.name].cpp}, {{}}, {{}})"
            lines.append(f"const Tensor {a.name}_tz = {given} ? {a.name}_t : {zeros};")
            env[f"{a.name}_t"] = Value(f"{a.name}_tz", "T")
    text = translator(op, table, "jvp of ", env).expression(rule).cpp
    return [*lines, "Tensor tangent;", f"{{ {GUARD} tangent = {text}; }}"]


def _diagonal(op: Op, table: Table) -> list[str]:
    """Each gradient formula with the tangent in the gradient's place.

    For a function of z with the derivative d the gradient is gy * d.conj(), the tangent t * d: the
    formula between two conjugations. For a function of z.conj() both are the formula as it stands.
    """
    env = _environment(op) | {"gy": Value("gy", "T")}
    t = translator(op, table, "jvp of ", env)
    lines = [GUARD]
    for (name, *_), text in op.gradient_groups:
        value = t.expression(text)
        if op.dual_grad:
            value = one_pass(op, name, value, t)
        partial = value.cpp if value.type == "T" else "Tensor()"
        conjugate = "" if name in op.antiholomorphic else "autograd::conjugate"
        lines.append(
            f"if ({name}_t.defined()) {{ const Tensor gy = {conjugate}({name}_t); "
            f"tangent = autograd::sum_tangents(tangent, {conjugate}({partial})); }}"
        )
    return ["Tensor tangent;", *block("", lines)]
