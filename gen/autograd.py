"""Backward nodes, the autograd layer and the forward-mode layer of every dispatched operator.

A node class holds what its formulas use: saved tensors, saved scalars, and only the sizes or dtype
of a tensor whose values no formula reads. Gradients come from the entry's ``grad`` formulas, from a
pointwise functor evaluated on dual numbers (a generated operator ``NAME_gradI``; an entry may have
both), or, for a kernel with a definition, from replaying ``expr``. Forward mode, from the
same sources, is in forward.py.
"""

from __future__ import annotations

import ast

from . import forward
from .cpp import Table, internal_names, internal_parameters, one_pass
from .expr import FACT_TYPES, Translator, Value, metadata_only, type_of
from .saved import Saved, find_saved, formulas, gy_names, replays
from .schema import Argument, SchemaError, Signature
from .table import Op, gradient_groups


def add_dual_operators(ops: list[Op]) -> list[Op]:
    """Entries for the gradients of pointwise functors that dual numbers compute.

    ``gelu`` gets ``gelu_grad0(gy, self)``: gy times the partial derivative, in one pass. Backward
    calls it where nothing differentiates the gradient further, and the formula of ``grad``
    elsewhere. Where an entry has no formula, a second derivative raises.
    """
    out = list(ops)
    for op in ops:
        if op.dual:
            out += _dual_operators(op)
    return out


def _dual_operators(op: Op) -> list[Op]:
    derived = []
    tensors = op.sig.tensor_args
    scalars = [a for a in op.sig.args if not a.is_tensor]
    calls: dict[str, str] = {}
    for i, arg in enumerate(tensors):
        name = f"{op.name}_grad{i}"
        sig = Signature(
            name,
            op.sig.overload,
            [
                Argument("gy", "Tensor"),
                *(Argument(a.name, a.type) for a in tensors),
                *(Argument(a.name, a.type, a.default, True) for a in scalars),
            ],
            op.sig.returns,
            f"{name}, derived from {op.sig.text}",
        )
        functors = {k: f"Grad<{v}, {i}>" for k, v in op.functors.items()}
        entry = Op(
            sig,
            op.file,
            op.line,
            "pointwise",
            functors if isinstance(op.source, dict) else functors[""],
            [],
            types="inexact" if op.types in ("all", "numeric", "inexact") else "floating",
            grad=None if op.grad is None else {},
            jvp="none",
        )
        derived.append(entry)
        given = [*(a.name for a in tensors), *(f"{a.name}={a.name}" for a in scalars)]
        calls[arg.name] = f"{name}(gy, {', '.join(given)})"
    if op.grad is None:
        op.grad = calls
    else:
        op.dual_grad = {name: calls[name] for name in op.grad}
    return derived


def node_name(op: Op, table: Table) -> str:
    """What Python prints of grad_fn: PyTorch's name of the node where both have one."""
    if "Backward" in op.node:
        return op.node
    base = op.node or op.name.strip("_").title().replace("_", "")
    return f"{base}Backward{table.overload_index(op)}"


def class_name(op: Op) -> str:
    return (
        "".join(part.capitalize() for part in op.ident.split("_"))
        + ("Inplace" if op.ident.endswith("_") else "")
        + "Node"
    )


def differentiable_args(op: Op) -> list[str]:
    if replays(op):
        return [a.name for a in op.sig.args if a.is_tensor or a.is_tensor_list]
    return [name for names_, _ in gradient_groups(op) for name in names_]


def _kept_when(op: Op, name: str) -> str:
    """A C++ condition, where one form of the operator keeps a tensor and the other does not."""
    if not op.inplace_grad:
        return ""
    reading = [metadata_only(text, name) is None for text in formulas(op)]
    if reading[-1] == any(reading[:-1]):
        return ""
    return "into.defined()" if reading[-1] else "!into.defined()"


def readers(op: Op, saved: Saved) -> dict[str, list[str]]:
    """What is saved for some gradients only -> the arguments whose gradients read it."""
    if replays(op) or op.inplace_grad:  # one argument has a gradient
        return {}
    out = {}
    for name in [*saved.tensors, *saved.results]:
        reading = [
            target
            for targets, text in gradient_groups(op)
            for target in targets
            if any(metadata_only(t, name) is None for t in (text, op.dual_grad.get(target, "None")))
        ]
        if set(reading) != set(differentiable_args(op)):
            out[name] = reading
    return out


class _FactRewriter(ast.NodeTransformer):
    """Turns ``x.sizes()`` into the saved value ``x__sizes`` where x itself is not saved."""

    def __init__(self, facts: dict[str, set[str]]):
        self.facts = facts

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if (
            isinstance(func, ast.Attribute)
            and isinstance(func.value, ast.Name)
            and func.attr in self.facts.get(func.value.id, ())
        ):
            return ast.Name(f"{func.value.id}__{func.attr}", ast.Load())
        return self.generic_visit(node)


def rewrite_facts(text: str, facts: dict[str, set[str]]) -> str:
    return ast.unparse(_FactRewriter(facts).visit(ast.parse(text.strip())))


def _takes_none(overloads: list[Signature], i: int) -> bool:
    return bool(overloads) and all(i < len(s.args) and s.args[i].optional for s in overloads)


def _needed_gradients(text: str, table: Table) -> set[str]:
    """The names in a formula without those that only stand where operators take a Tensor?."""
    tree = ast.parse(text.strip())
    optional = {
        id(arg)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        for i, arg in enumerate(call.args)
        if _takes_none(table.overloads(call.func.id), i)
    }
    return {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in optional}


def _edges(op: Op) -> list[Argument]:
    """Tensor arguments with a place among the next edges (lists: one place an element)."""
    wanted = set(differentiable_args(op))
    return [a for a in op.sig.args if a.name in wanted]


def _needs(op: Op) -> dict[str, str]:
    """argument -> C++ condition in apply(): is its gradient wanted?"""
    edges = _edges(op)
    if len(edges) == 1 and edges[0].is_tensor_list:
        return {edges[0].name: "true"}
    out, offset = {}, "0"
    for a in edges:
        if a.is_tensor_list:
            out[a.name] = f"should_compute_any({offset}, {a.name}_count)"
            offset = f"{offset} + {a.name}_count"
        else:
            out[a.name] = f"should_compute({offset})"
            offset = offset + " + 1" if "_count" in offset else str(int(offset) + 1)
    return out


def _offsets(op: Op) -> dict[str, str]:
    out, offset = {}, "0"
    for a in _edges(op):
        out[a.name] = offset
        if a.is_tensor_list:
            offset = f"{offset} + {a.name}_count"
        else:
            offset = offset + " + 1" if "_count" in offset else str(int(offset) + 1)
    return out


def node_lines(op: Op, table: Table) -> list[str]:
    saved, cls, title = find_saved(op), class_name(op), node_name(op, table)
    lines = [f"struct {cls} final : Node {{"]
    lines += [f"  SavedTensor {t}_;" for t in [*saved.tensors, *saved.results]]
    lines += [f"  std::vector<SavedTensor> {t}_;" for t in saved.lists]
    for tensor, facts in saved.facts.items():
        lines += [f"  {FACT_TYPES[f][0]} {tensor}__{f};" for f in sorted(facts)]
    lines += [f"  {a.stored_type} {a.name};" for a in saved.values]
    lines += [f"  size_t {a.name}_count = 0;" for a in _edges(op) if a.is_tensor_list]
    if len(op.sig.returns) > 1:
        lines.append(f"  ResultFacts result_facts[{len(op.sig.returns)}];")
    title = f'"{title}"'
    if op.inplace_grad:
        lines.append("  bool in_place = false;")
        if "Backward" not in op.node:  # PyTorch counts the in-place form as an overload
            title = f'in_place ? "{title[1:-2]}1" : {title}'
    lines.append(f"  const char* name() const override {{ return {title}; }}")
    lines.append("  void release_saved() override {")
    lines += [f"    {t}_.reset();" for t in [*saved.tensors, *saved.results]]
    lines += [f"    for (auto& t : {t}_) t.reset();" for t in saved.lists]
    lines += ["  }", *_visit_lines(op, saved)]
    lines += ["  TensorList apply(TensorList&& grads) override;", "};"]
    return lines


# What PyTorch calls the metadata of a tensor that its nodes keep.
SHOWN_FACTS = {"sizes": "sym_sizes", "strides": "sym_strides", "dtype": "scalar_type", "dim": "dim"}
NOT_SHOWN = ("device", "memory_format", "Generator", "options")


def _visit_lines(op: Op, saved: Saved) -> list[str]:
    """visit_saved, for grad_fn._saved_NAME; nothing for a node that keeps nothing."""
    shown = [(t, f"{t}_") for t in [*saved.tensors, *saved.results, *saved.lists]]
    shown += [
        (f"{tensor}_{SHOWN_FACTS[f]}", f"{tensor}__{f}")
        for tensor, facts in saved.facts.items()
        for f in sorted(facts)
        if f in SHOWN_FACTS
    ]
    shown += [(a.name, a.name) for a in saved.values if not a.type.startswith(NOT_SHOWN)]
    if not shown:
        return []
    body = [f'    show.show("{name}", {member});' for name, member in shown]
    return ["  void visit_saved(autograd::SavedVisitor& show) override {", *body, "  }"]


def _unpacked_env(op: Op, saved: Saved) -> tuple[list[str], dict[str, Value]]:
    """Statements that unpack the saved values in apply(), and the names they make."""
    lines, env = [], {}
    some, needs = readers(op, saved), _needs(op)
    for name in [*saved.tensors, *saved.results]:
        value = f"{name}_.unpack(*this)"
        if name in some:
            value = f"{' || '.join(needs[target] for target in some[name])} ? {value} : Tensor()"
        elif form := _kept_when(op, name):
            held = "!in_place" if form.startswith("!") else "in_place"
            value = f"{held} ? {value} : Tensor()"
        lines.append(f"  const Tensor {name} = {value};")
        env[name] = Value(name, "T")
    for name in saved.lists:
        lines.append(f"  const TensorList {name} = unpack_all({name}_, *this);")
        env[name] = Value(name, "L")
    for tensor, facts in saved.facts.items():
        for f in facts:
            env[f"{tensor}__{f}"] = Value(f"{tensor}__{f}", FACT_TYPES[f][1])
    for a in saved.values:
        env[a.name] = Value(a.name, type_of(a.type))
    return lines, env


def apply_lines(op: Op, table: Table) -> list[str]:
    saved, cls = find_saved(op), class_name(op)
    offsets, needs = _offsets(op), _needs(op)
    total = " + ".join("1" if a.is_tensor else f"{a.name}_count" for a in _edges(op)) or "0"
    lines = [f"TensorList {cls}::apply(TensorList&& grads) {{", f"  TensorList out({total});"]
    if replays(op):
        return [lines[0], *_replay_apply(op, saved), "}"]
    if op.returns_list:
        lines.append("  const TensorList gy = autograd::all_gradients(*this, std::move(grads));")
    for i, gy in enumerate([] if op.returns_list else gy_names(op)):
        lines.append(f"  [[maybe_unused]] Tensor {gy} = std::move(grads[{i}]);")
    defined = " && ".join(f"!{gy}.defined()" for gy in gy_names(op))
    lines.append(f"  if ({'gy.empty()' if op.returns_list else defined}) return out;")
    if len(op.sig.returns) > 1:
        used = set().union(*(_needed_gradients(t, table) for _, t in gradient_groups(op)))
        lines += [
            f"  if (!{gy}.defined()) {gy} = result_facts[{i}].zeros();"
            for i, gy in enumerate(gy_names(op))
            if gy in used
        ]
    unpack, env = _unpacked_env(op, saved)
    lines += unpack
    for gy, r in zip(gy_names(op), op.sig.returns):
        env[gy] = Value(gy, "L" if r.type == "Tensor[]" else "T")
    for targets, text in gradient_groups(op):
        t = Translator(table.overloads, f"{op.where}: grad of {op.name}", env)
        t.needs = lambda name: needs[name]
        value = t.expression(rewrite_facts(text, saved.facts))
        if op.dual_grad:
            value = one_pass(op, targets[0], value, t, "autograd::differentiated")
        if op.inplace_grad:
            other = t.expression(rewrite_facts(op.inplace_grad, saved.facts))
            value = Value(f"in_place ? {other.cpp} : {value.cpp}", "T")
        for held, message in op.inplace_check:
            lines.append(f"  TD_CHECK(!in_place || {t.condition(held)}, {t.message(message)});")
        condition = " || ".join(needs[n] for n in targets)
        if len(targets) == 1 and op.sig.arg(targets[0]).is_tensor_list:
            name = targets[0]
            lines.append(f"  {{ TensorList part = {value.cpp};")
            lines.append(
                f"    for (size_t i = 0; i < part.size() && i < {name}_count; i++) out[{offsets[name]} + i] = std::move(part[i]); }}"
            )
        elif len(targets) == 1:
            cpp = (
                "Tensor()"
                if value.type == "0"
                else f"Tensor({value.cpp})"
                if value.type != "T"
                else value.cpp
            )
            lines.append(f"  if ({condition}) out[{offsets[targets[0]]}] = {cpp};")
        else:
            lines.append(f"  if ({condition}) {{")
            lines.append(f"    auto parts = {value.cpp};")
            for i, name in enumerate(targets):
                lines.append(
                    f"    if ({needs[name]}) out[{offsets[name]}] = std::move(std::get<{i}>(parts));"
                )
            lines.append("  }")
    return [*lines, "  return out;", "}"]


def _replay_apply(op: Op, saved: Saved) -> list[str]:
    """The gradient of a kernel without formulas: its definition, differentiated at saved inputs."""
    unpack, _ = _unpacked_env(op, saved)
    inputs = ", ".join(saved.tensors)
    fresh = ", ".join(
        f"in[{saved.tensors.index(a.name)}]" if a.is_tensor else a.name for a in op.sig.args
    )
    if saved.lists:
        raise SchemaError(
            f"{op.where}: {op.name}: a definition over tensor lists cannot be replayed; give 'grad'"
        )
    one = len(op.sig.returns) == 1
    result = (
        "TensorList{y}"
        if one
        else "TensorList{"
        + ", ".join(f"std::get<{i}>(y)" for i in range(len(op.sig.returns)))
        + "}"
    )
    return [
        *unpack,
        f"  return autograd::replay(TensorList{{{inputs}}}, grads, [&]([[maybe_unused]] const TensorList& in) {{",
        f"    auto y = definition::{op.ident}({_stored_call(op, fresh)});",
        f"    return {result};",
        "  });",
    ]


def _stored_call(op: Op, text: str) -> str:
    """Stored optional int lists become views again."""
    parts = text.split(", ")
    return ", ".join(
        f"expr::opt_ints({p})" if a.type in ("int[]?", "dims?") else p
        for p, a in zip(parts, op.sig.args)
    )


def _save_lines(op: Op, saved: Saved, after: bool) -> list[str]:
    """Statements that fill a node: before the call its inputs, after it its results."""
    results = {r.name for r in op.sig.returns}
    some = readers(op, saved)
    lines = []
    if not after:
        for name in saved.tensors:
            kept = saved_input(op, name)
            if name in some:
                lines.append(f"if ({_any_requires_grad(some[name])}) node->{name}_ = {kept};")
            elif form := _kept_when(op, name):
                lines.append(f"if ({form}) node->{name}_ = SavedTensor::input({name});")
            else:
                lines.append(f"node->{name}_ = {kept};")
        for name in saved.results:  # before the call: writing in place may change the answer
            if name in some:
                lines.append(f"const bool keeps_{name} = {_any_requires_grad(some[name])};")
        for name in saved.lists:
            lines.append(f"node->{name}_ = save_all({name});")
        for a in saved.values:
            lines.append(f"node->{a.name} = stored({a.name});")
        if op.inplace_grad:
            lines.append("node->in_place = into.defined();")
    else:
        for i, r in enumerate(op.sig.returns):
            if r.name in saved.results:
                value = "made" if len(op.sig.returns) == 1 else f"std::get<{i}>(made)"
                form = _kept_when(op, r.name)
                given = (
                    f"if (keeps_{r.name}) " if r.name in some else f"if ({form}) " if form else ""
                )
                lines.append(f"{given}node->{r.name}_ = SavedTensor::output({value}, node);")
    for tensor, facts in saved.facts.items():
        if (tensor in results) != after:
            continue
        source = tensor
        if after:
            k = [r.name for r in op.sig.returns].index(tensor)
            source = "made" if len(op.sig.returns) == 1 else f"std::get<{k}>(made)"
        for f in sorted(facts):
            value = f"{source}.{f}()"
            if f == "layouts":
                value = f"autograd::layouts({source})"
            if f in ("sizes", "strides"):
                value = f"DimVector({value})"
            if not after and op.sig.arg(tensor).optional:
                value = f"({source}.defined() ? {value} : {FACT_TYPES[f][0]}{{}})"
            lines.append(f"node->{tensor}__{f} = {value};")
    return lines


def _any_requires_grad(names: list[str]) -> str:
    return " || ".join(f"autograd::requires_grad({name})" for name in names) or "false"


def saved_input(op: Op, name: str) -> str:
    """An argument to save; of the one that the call overwrites, a copy."""
    if name == op.sig.args[0].name:
        if op.mutates:
            return f"SavedTensor::input(autograd::copy_for_backward({name}))"
        if "inplace" in op.variants and op.body == "pointwise":
            written = f"autograd::is_overwritten({name}, into)"
            kept = f"{written} ? autograd::copy_for_backward({name}) : {name}"
            return f"SavedTensor::input({kept})"
    return f"SavedTensor::input({name})"


def layer_lines(op: Op, table: Table) -> list[str]:
    """autograd_layer::IDENT: records a node when gradients are wanted, then calls below."""
    ret, ident = op.sig.return_cpp, op.ident
    lines = [f"{ret} autograd_layer::{ident}([[maybe_unused]] {internal_parameters(op)}) {{"]
    below = f"redispatch::{ident}({internal_names(op, keys='keys - KeySet(Key::kAutograd)')})"
    edges = _edges(op)
    inplace = op.body == "pointwise" and "inplace" in op.variants
    target = op.sig.args[0].name if op.mutates else "into"
    writes = op.mutates or inplace
    tensors = [a for a in op.sig.args if a.is_tensor or a.is_tensor_list]
    if op.view and op.grad == {}:
        return [*lines, f"  return {below};", "}"]
    if not edges and not writes and not op.view:
        if op.grad is None and not op.expr:
            wanted = ", ".join(a.name for a in tensors)
            return [
                *lines,
                f"  if (needs_grad({wanted})) {{",
                f"    return autograd::not_differentiable({_missing_node(op, wanted)}, {below});",
                "  }",
                f"  return {below};",
                "}",
            ]
        return [*lines, f"  return {below};", "}"]
    wanted = ", ".join(a.name for a in edges)
    if writes and edges and edges[0].name != op.sig.args[0].name:
        wanted = f"{op.sig.args[0].name}, {wanted}"
    if writes and op.grad == {}:  # the old history is not that of the new values
        wanted = ", ".join(a.name for a in tensors)
    needs = f"needs_grad({wanted})" if wanted else "false"
    if op.grad == {} and op.promote == "bool":  # a new result is bool and has no gradient
        needs = f"into.defined() && into.is_same({op.sig.args[0].name}) && {needs}"
    lines.append(f"  const bool needs = {needs};")
    if op.mutates:
        lines.append(f'  autograd::check_inplace("{op.name}", {target}, needs);')
    elif inplace:
        lines.append(f'  if (into.defined()) autograd::check_inplace("{op.name}_", into, needs);')
    below_guarded = f"[&] {{ const ExcludeKeys below(KeySet(Key::kAutograd)); return {below}; }}()"
    lines.append(f"  if (!needs) return {below_guarded};")
    if op.grad == {} and not op.view:
        if op.mutates or inplace:
            lines += [
                f"  const Ref<Node> node = {_node_without_formula(op, wanted, table)};",
                f"  return autograd::not_differentiable_inplace(node, {below_guarded});",
            ]
        return [*lines, "}"]
    saved, cls = find_saved(op), class_name(op)
    lines.append(f"  const Ref<{cls}> node = make_ref<{cls}>();")
    pieces = ", ".join(a.name for a in edges)
    lines.append(f"  node->set_next_edges(autograd::edges({pieces}));")
    for a in edges:
        if a.is_tensor_list:
            lines.append(f"  node->{a.name}_count = {a.name}.size();")
    save = _save_lines(op, saved, after=False)
    lines += ["  " + line for line in save]
    lines.append(
        f"  {'auto' if len(op.sig.returns) > 1 else op.sig.return_cpp} made = {below_guarded};"
    )
    lines += _history_lines(op, inplace)
    lines += ["  " + line for line in _save_lines(op, saved, after=True)]
    return [*lines, "  return made;", "}"]


def _node_without_formula(op: Op, wanted: str, table: Table) -> str:
    """Truth values are constant almost everywhere; of other results the derivative is missing."""
    if op.promote == "bool":
        return f'autograd::zero_gradient_node("{node_name(op, table)}", autograd::edges({wanted}))'
    return _missing_node(op, wanted)


def _missing_node(op: Op, wanted: str) -> str:
    return f'autograd::not_differentiable_node("{op.name}", autograd::edges({wanted}))'


def _history_lines(op: Op, inplace: bool) -> list[str]:
    returns = op.sig.returns
    if op.mutates:
        return ["  rebase_history(made, node);"]
    if inplace:
        return [
            "  if (into.defined()) rebase_history(made, node);",
            "  else set_history(made, node);",
        ]
    if len(returns) == 1:
        return ["  set_history(made, node);"]
    lines = []
    for i in range(len(returns)):
        lines.append(f"  set_history(std::get<{i}>(made), node, {i});")
        lines.append(f"  node->result_facts[{i}] = ResultFacts(std::get<{i}>(made));")
    return lines


def source_file(ops: list[Op], table: Table) -> str:
    out = ['#include "autograd/generated.h"', '#include "autograd/layer.h"', "namespace taeda {"]
    for op in ops:
        if not op.dispatched:
            continue
        out.append(f"// {op.sig.text}")
        if _edges(op):
            out += [
                "namespace {",
                *node_lines(op, table),
                *apply_lines(op, table),
                "}  // namespace",
            ]
        out += layer_lines(op, table)
        out += forward.layer_lines(op, table)
    return "\n".join([*out, "}  // namespace taeda", ""])
