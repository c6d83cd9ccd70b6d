"""Backward nodes: the class that an operator's history is made of, what fills one, and its apply().

A node holds what its formulas use: saved tensors, saved scalars, and only the sizes or dtype of a
tensor whose values no formula reads. Gradients come from the entry's ``grad`` formulas, from a
pointwise functor evaluated on dual numbers (a generated operator ``NAME_gradI``; an entry may have
both), or, for a kernel with a definition, from replaying ``expr``.
"""

from __future__ import annotations

from dataclasses import dataclass

from .cpp import Table, one_pass
from .expr import TENSOR_METADATA, Translator
from .op import Op
from .saved import SHOWN, Saved, formulas, gy_names, names_needed, reads_once, reads_values
from .schema import Argument
from .text import block, indented
from .values import OWNERS, Value

TENSOR, LIST = "SavedTensor", "std::vector<SavedTensor>"
NOT_SHOWN = ("device", "memory_format", "Generator", "options")


def node_name(op: Op, table: Table, form: int = 0) -> str:
    """What Python prints of grad_fn: PyTorch's name of the node where both have one."""
    if "Backward" in op.node:
        return op.node
    base = op.node or op.name.strip("_").title().replace("_", "")
    return f"{base}Backward{table.by_name[op.name].index(op) + form}"


@dataclass
class Kept:
    """One member of a node: something that formulas read, as C++ text."""

    name: str  # in formulas
    type: str  # there
    cpp: str  # type of the member
    source: str  # what fills it
    shown: str = ""  # its name in Python: grad_fn._saved_NAME
    when: str = ""  # filled where this holds; empty: always
    wanted: str = ""  # the same in apply()
    is_result: bool = False  # filled after the call

    def __post_init__(self) -> None:
        packed = self.cpp in (TENSOR, LIST)
        self.member = f"{self.name}_" if packed else self.name
        condition = f"if ({self.when}) " if self.when else ""
        self.fill = f"{condition}node->{self.member} = {self.source};"
        # Makes a tensor readable again.
        value = f"unpacked({self.member}, *this)"
        value = f"{self.wanted} ? {value} : Tensor()" if self.wanted else value
        self.unpack = [f"const auto {self.name} = {value};"] if packed else []


class BackwardNode:
    """The node class of one operator."""

    def __init__(self, op: Op, table: Table):
        self.op, self.table = op, table
        words = "".join(part.capitalize() for part in op.ident.split("_"))
        self.name = f"{words}{'Inplace' if op.ident.endswith('_') else ''}Node"
        # Tensor arguments with an index among the next edges (lists: one index an element).
        wanted = op.differentiated
        self.edges = [a for a in op.sig.tensors if op.replays_backward or a.name in wanted]
        self.indices: dict[str, str] = {}  # the C++ index of the first edge
        self.needs: dict[str, str] = {}  # C++ condition in apply(): is the gradient wanted?
        single, counts = 0, ""
        for a in self.edges:
            index = self.indices[a.name] = f"{single}{counts}"
            self.needs[a.name] = f"should_compute({index})"
            single += a.is_tensor
            if a.is_tensor_list:
                counts += f" + {a.name}_count"
                needed = f"should_compute_any({index}, {a.name}_count)"
                self.needs[a.name] = "true" if len(self.edges) == 1 else needed
        saved = self.saved = Saved(op)
        self.made = dict(zip((r.name for r in op.sig.returns), op.sig.parts("made")))
        self.kept = [self._argument(a) for a in saved.args]
        for name in saved.results:
            source = f"SavedTensor::output({self.made[name]}, node)"
            conditions = self._conditions(name)
            self.kept.append(Kept(name, "T", TENSOR, source, name, *conditions, is_result=True))
        self.kept += [self._metadata(t, m) for t, ms in saved.metadata.items() for m in sorted(ms)]
        # What is filled before the call and after it.
        self.before = [kept.fill for kept in self.kept if not kept.is_result]
        if op.inplace_grad:
            self.before.append("node->in_place = into.defined();")
        self.before += self._choices_of_name()
        self.after = [kept.fill for kept in self.kept if kept.is_result]

    def _choices_of_name(self) -> list[str]:
        """C++ that gives the node another name where a condition of `node_where` holds."""
        t, choices = self.table.translator(self.op, "node_where of "), self.op.node_where.items()
        return [f'if ({t.condition(holds)}) node->title = "{name}";' for name, holds in choices]

    # --- what it keeps ---

    def _conditions(self, name: str) -> tuple[str, str]:
        """C++ of when a tensor is kept, where the node is filled and in apply(); empty: always."""
        op = self.op
        if op.replays_backward:
            return "", ""
        if op.inplace_grad:  # one form of the operator may not read it
            *plain, inplace = (reads_values(text, name) for text in formulas(op))
            no = "" if inplace else "!"
            return ("", "") if any(plain) == inplace else (f"{no}into.defined()", f"{no}in_place")
        readers = [
            target
            for targets, text in op.gradient_groups
            for target in targets
            if reads_values(f"{text}, {op.dual_grad.get(target, 0)}", name)
        ]
        if len(readers) == len(self.edges) or any(op.sig.arg(t).is_tensor_list for t in readers):
            return "", ""
        wanted = " || ".join(f"node->has_edge({self.indices[target]})" for target in readers)
        return wanted or "false", " || ".join(self.needs[t] for t in readers)

    def _argument(self, a: Argument) -> Kept:
        shown = "" if a.type.startswith(NOT_SHOWN) else a.name
        cpp = TENSOR if a.is_tensor else LIST if a.is_tensor_list else a.stored_type
        when, wanted = self._conditions(a.name) if a.is_tensor else ("", "")
        source = a.name  # of the one that the call overwrites, a copy
        if (written := self.op.overwritten(a.name)) and not (when and self.op.inplace_grad):
            source = f"autograd::kept({a.name}, {written})"
        return Kept(a.name, a.expr_type, cpp, f"stored({source})", shown, when, wanted)

    def _metadata(self, tensor: str, m: str) -> Kept:
        kind = TENSOR_METADATA.get(m, "L")
        cpp = OWNERS[kind]
        arg = next((a for a in self.op.sig.args if a.name == tensor), None)
        source = tensor if arg else self.made[tensor]
        value = f"autograd::layouts({source})" if m == "layouts" else f"stored({source}.{m}())"
        if arg and arg.optional:
            value = f"({source}.defined() ? {value} : {cpp}{{}})"
        shown = f"{tensor}_{SHOWN[m]}" if m in SHOWN else ""
        return Kept(f"{tensor}__{m}", kind, cpp, value, shown, is_result=arg is None)

    # --- the class, and what fills one ---

    def declaration(self) -> list[str]:
        op = self.op
        members = [f"{kept.cpp} {kept.member};" for kept in self.kept]
        members += [f"size_t {a.name}_count = 0;" for a in self.edges if a.is_tensor_list]
        title = f'"{node_name(op, self.table)}"'
        if op.inplace_grad:
            members.append("bool in_place = false;")
            if "Backward" not in op.node:  # PyTorch counts the in-place form as an overload
                title = f'in_place ? "{node_name(op, self.table, form=1)}" : {title}'
        if op.node_where:
            members.append(f"const char* title = {title};")
            title = "title"
        members.append(f"const char* name() const override {{ return {title}; }}")
        named = ((op.saved_as.get(k.shown, k.shown), k.member) for k in self.kept if k.shown)
        shown = (f'visit("{name}", {member});' for name, member in named)
        members += block("void fields([[maybe_unused]] const auto& visit)", shown)
        members += [
            "void release_saved() override { fields(autograd::Release()); }",
            "void visit_saved(autograd::SavedVisitor& show) override { fields(autograd::Show{show}); }",
            "TensorList apply(TensorList&& grads) override;",
        ]
        base = f"autograd::{op.steps}<{self.name}>" if op.steps else "Node"
        return [f"struct {self.name} final : {base} {{", *indented(members), "};"]

    # --- apply ---

    def apply(self) -> list[str]:
        body = self._replayed() if self.op.replays_backward else self._from_formulas()
        return block(f"TensorList {self.name}::apply(TensorList&& grads)", body)

    def _replayed(self) -> list[str]:
        """The gradient of a kernel without formulas: its definition, differentiated at saved inputs."""
        op, inputs = self.op, [a.name for a in self.saved.args if a.is_tensor]
        if any(a.is_tensor_list for a in self.saved.args):
            raise op.fail("a definition over tensor lists cannot be replayed; give 'grad'")
        args = (f"in[{inputs.index(a.name)}]" if a.is_tensor else a.name for a in op.sig.args)
        results = ", ".join(op.sig.parts("y"))
        tensors = f"TensorList{{{', '.join(inputs)}}}"
        return [
            *(line for kept in self.kept for line in kept.unpack),
            f"return autograd::replay({tensors}, grads, [&]([[maybe_unused]] const TensorList& in) {{",
            f"  auto y = definition::{op.ident}({', '.join(args)});",
            f"  return TensorList{{{results}}};",
            "});",
        ]

    def _from_formulas(self) -> list[str]:
        op = self.op
        sizes = ("1" if a.is_tensor else f"{a.name}_count" for a in self.edges)
        lines = [f"TensorList out({' + '.join(sizes) or '0'});", *self._result_gradients()]
        lines += (line for kept in self.kept for line in kept.unpack)
        env = {kept.name: Value(kept.name, kept.type) for kept in self.kept}
        env |= {gy: Value(gy, r.base.expr) for gy, r in zip(gy_names(op), op.sig.returns)}
        t = self.table.translator(op, "grad of ", env)
        t.needs = self.needs.__getitem__
        groups = op.gradient_groups
        for i, (targets, text) in enumerate(groups):
            later = " || ".join(self.needs[name] for names, _ in groups[i + 1 :] for name in names)
            value = self._evaluated(t, text, later)
            if op.dual_grad:
                value = one_pass(op, value, self._evaluated(t, op.dual_grad[targets[0]], later), t)
            if op.inplace_grad:
                inplace = self._evaluated(t, op.inplace_grad, later)
                value = Value(f"in_place ? {inplace.cpp} : {value.cpp}", "T")
            for held, message in op.inplace_check:
                condition = f"!in_place || {t.condition(held)}"
                lines.append(f"TD_CHECK({condition}, {t.message(message)});")
            lines += self._assigned(targets, value)
        return [*lines, "return out;"]

    def _result_gradients(self) -> list[str]:
        """The gradients of the results, zeros where a formula needs one that is missing."""
        op, names = self.op, gy_names(self.op)
        if op.returns_list:
            return [
                "const TensorList gy = autograd::all_gradients(*this, std::move(grads));",
                "if (gy.empty()) return out;",
            ]
        taken = "[[maybe_unused]] Tensor {} = std::move(grads[{}]);".format
        lines = [taken(name, i) for i, name in enumerate(names)]
        lines.append(f"if ({' && '.join(f'!{n}.defined()' for n in names)}) return out;")
        texts = [text for _, text in op.gradient_groups] if len(names) > 1 else []
        read = set().union(*(names_needed(text, self.table.takes_none) for text in texts))
        zeros = "if (!{0}.defined()) {0} = input_metadata({1}).zeros();"
        return [*lines, *(zeros.format(n, i) for i, n in enumerate(names) if n in read)]

    def _evaluated(self, t: Translator, formula: str, later: str) -> Value:
        """A formula's value, where `later` says that another one is evaluated after it. A `gy` that
        is read once, and for the last time, leaves its memory to the result (LastUse)."""
        if "gy" in t.env and not self.op.returns_list:
            last = reads_once(formula, "gy", self.table.is_pointwise)
            condition = f", !({later})" if later else ""
            t.env["gy"] = Value(f"LastUse(gy{condition}).tensor" if last else "gy", "T")
        return t.expression(formula)

    def _assigned(self, targets: list[str], value: Value) -> list[str]:
        """Statements that give the arguments `targets` their gradients."""
        name = targets[0]
        index = self.indices[name]
        if self.op.sig.arg(name).is_tensor_list:
            return [f"autograd::store_list({value.cpp}, out, {index}, {name}_count);"]
        if len(targets) > 1:
            indices = ", ".join(self.indices[n] for n in targets)
            condition = " || ".join(self.needs[n] for n in targets)
            return [f"if ({condition}) autograd::store(*this, {value.cpp}, out, {{{indices}}});"]
        return [f"if ({self.needs[name]}) out[{index}] = {value.cpp};"]
