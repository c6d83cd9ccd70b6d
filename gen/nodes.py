"""Backward nodes: the class that an operator's history is made of, what fills one, and its apply().

A node holds what its formulas use: saved tensors, saved scalars, and only the sizes or dtype of a
tensor whose values no formula reads. Gradients come from the entry's ``grad`` formulas, from a
pointwise functor evaluated on dual numbers (a generated operator ``NAME_gradI``; an entry may have
both), or, for a kernel with a definition, from replaying ``expr``.
"""

from __future__ import annotations

import ast

from .cpp import Table, one_pass
from .expr import Translator
from .op import Op
from .reads import METADATA, from_metadata, metadata_only
from .saved import find_saved, formulas, gy_names
from .schema import SchemaError, Signature
from .text import block
from .values import Value

# What PyTorch calls the metadata of a tensor that its nodes keep.
SHOWN_METADATA = {
    "sizes": "sym_sizes",
    "strides": "sym_strides",
    "dtype": "scalar_type",
    "dim": "dim",
}
NOT_SHOWN = ("device", "memory_format", "Generator", "options")


def node_name(op: Op, table: Table, form: int = 0) -> str:
    """What Python prints of grad_fn: PyTorch's name of the node where both have one."""
    if "Backward" in op.node:
        return op.node
    base = op.node or op.name.strip("_").title().replace("_", "")
    return f"{base}Backward{table.overload_index(op) + form}"


def differentiable_args(op: Op) -> list[str]:
    if op.replays_backward:
        return [a.name for a in op.sig.args if a.is_tensor or a.is_tensor_list]
    return [name for names, _ in op.gradient_groups for name in names]


class BackwardNode:
    """The node class of one operator."""

    def __init__(self, op: Op, table: Table):
        self.op, self.table = op, table
        self.saved = find_saved(op)
        words = "".join(part.capitalize() for part in op.ident.split("_"))
        self.name = f"{words}{'Inplace' if op.ident.endswith('_') else ''}Node"
        wanted = set(differentiable_args(op))
        # Tensor arguments with an index among the next edges (lists: one index an element).
        self.edges = [a for a in op.sig.args if a.name in wanted]
        self.indices = self._edge_indices()
        self.needs = self._edge_needs()
        self.readers = self._readers()

    def _edge_indices(self) -> dict[str, str]:
        """argument -> the C++ index of its first edge."""
        out, index = {}, "0"
        for a in self.edges:
            out[a.name] = index
            if a.is_tensor_list:
                index += f" + {a.name}_count"
            else:
                index = str(int(index) + 1) if index.isdigit() else f"{index} + 1"
        return out

    def _edge_needs(self) -> dict[str, str]:
        """argument -> C++ condition in apply(): is its gradient wanted?"""
        if len(self.edges) == 1 and self.edges[0].is_tensor_list:
            return {self.edges[0].name: "true"}
        return {
            a.name: f"should_compute_any({self.indices[a.name]}, {a.name}_count)"
            if a.is_tensor_list
            else f"should_compute({self.indices[a.name]})"
            for a in self.edges
        }

    def _readers(self) -> dict[str, list[str]]:
        """What is saved for some gradients only -> the arguments whose gradients read it."""
        op = self.op
        if op.replays_backward or op.inplace_grad:  # one argument has a gradient
            return {}
        formulas_of = {
            target: [text, *([op.dual_grad[target]] if target in op.dual_grad else [])]
            for targets, text in op.gradient_groups
            for target in targets
        }
        out = {}
        for name in self.saved.single:
            reading = [t for t, texts in formulas_of.items() if _any_reads(texts, name)]
            if len(reading) < len(formulas_of):
                out[name] = reading
        return out

    def _kept_when(self, name: str) -> str:
        """ "inplace" or "plain" where only that form of the operator keeps a tensor."""
        if not self.op.inplace_grad:
            return ""
        *plain, inplace = ([text] for text in formulas(self.op))
        in_plain, in_inplace = any(_any_reads(t, name) for t in plain), _any_reads(inplace, name)
        return "" if in_plain == in_inplace else "inplace" if in_inplace else "plain"

    # --- the class ---

    def declaration(self) -> list[str]:
        op, saved = self.op, self.saved
        members = [f"SavedTensor {t}_;" for t in saved.single]
        members += [f"std::vector<SavedTensor> {t}_;" for t in saved.lists]
        for tensor, kept in saved.metadata.items():
            members += [f"{METADATA[m][0]} {tensor}__{m};" for m in sorted(kept)]
        members += [f"{a.stored_type} {a.name};" for a in saved.values]
        members += [f"size_t {a.name}_count = 0;" for a in self.edges if a.is_tensor_list]
        if len(op.sig.returns) > 1:
            members.append(f"ResultMetadata result_metadata[{len(op.sig.returns)}];")
        title = f'"{node_name(op, self.table)}"'
        if op.inplace_grad:
            members.append("bool in_place = false;")
            if "Backward" not in op.node:  # PyTorch counts the in-place form as an overload
                title = f'in_place ? "{node_name(op, self.table, form=1)}" : {title}'
        members.append(f"const char* name() const override {{ return {title}; }}")
        release = [f"{t}_.reset();" for t in saved.single]
        release += [f"for (auto& t : {t}_) t.reset();" for t in saved.lists]
        members += block("void release_saved() override", release)
        members += self._visit_saved()
        members.append("TensorList apply(TensorList&& grads) override;")
        return [*block(f"struct {self.name} final : Node", members)[:-1], "};"]

    def _visit_saved(self) -> list[str]:
        """visit_saved, for grad_fn._saved_NAME; nothing for a node that keeps nothing."""
        saved = self.saved
        shown = [(t, f"{t}_") for t in [*saved.single, *saved.lists]]
        shown += [
            (f"{tensor}_{SHOWN_METADATA[m]}", f"{tensor}__{m}")
            for tensor, kept in saved.metadata.items()
            for m in sorted(kept & set(SHOWN_METADATA))
        ]
        shown += [(a.name, a.name) for a in saved.values if not a.type.startswith(NOT_SHOWN)]
        if not shown:
            return []
        body = [f'show.show("{name}", {member});' for name, member in shown]
        return block("void visit_saved(autograd::SavedVisitor& show) override", body)

    # --- filling one: before the call with its inputs, after it with its results ---

    def fill_before(self) -> list[str]:
        lines = []
        for name in self.saved.tensors:
            if name in self.readers:
                given = f"if ({_any_requires_grad(self.readers[name])}) "
            elif form := self._kept_when(name):
                given = f"if ({'' if form == 'inplace' else '!'}into.defined()) "
            else:
                given = ""
            kept = name if given and name not in self.readers else saved_input(self.op, name)
            lines.append(f"{given}node->{name}_ = SavedTensor::input({kept});")
        for name in self.saved.results:  # before the call: writing in place may change the answer
            if name in self.readers:
                wanted = _any_requires_grad(self.readers[name])
                lines.append(f"const bool keeps_{name} = {wanted};")
        lines += [f"node->{name}_ = save_all({name});" for name in self.saved.lists]
        lines += [f"node->{a.name} = stored({a.name});" for a in self.saved.values]
        if self.op.inplace_grad:
            lines.append("node->in_place = into.defined();")
        for a in self.op.sig.args:
            if a.name in self.saved.metadata:
                lines += self._fill_metadata(a.name, a.name, a.optional)
        return lines

    def fill_after(self) -> list[str]:
        lines, metadata = [], []
        arguments = {a.name for a in self.op.sig.args}
        for i, r in enumerate(self.op.sig.returns):
            value = "made" if len(self.op.sig.returns) == 1 else f"std::get<{i}>(made)"
            if r.name in self.saved.results:
                given = f"if (keeps_{r.name}) " if r.name in self.readers else ""
                if form := self._kept_when(r.name):
                    given = f"if ({'' if form == 'inplace' else '!'}into.defined()) "
                lines.append(f"{given}node->{r.name}_ = SavedTensor::output({value}, node);")
            if r.name in self.saved.metadata and r.name not in arguments:
                metadata += self._fill_metadata(r.name, value, False)
        return lines + metadata

    def _fill_metadata(self, name: str, source: str, optional: bool) -> list[str]:
        lines = []
        for m in sorted(self.saved.metadata[name]):
            value = f"autograd::layouts({source})" if m == "layouts" else f"{source}.{m}()"
            if m in ("sizes", "strides"):
                value = f"DimVector({value})"
            if optional:
                value = f"({source}.defined() ? {value} : {METADATA[m][0]}{{}})"
            lines.append(f"node->{name}__{m} = {value};")
        return lines

    # --- apply ---

    def apply(self) -> list[str]:
        body = self._replayed() if self.op.replays_backward else self._from_formulas()
        return block(f"TensorList {self.name}::apply(TensorList&& grads)", body)

    def _unpacked(self) -> tuple[list[str], dict[str, Value]]:
        """Statements that unpack the saved values, and the names they make."""
        lines, env = [], {}
        for name in self.saved.single:
            value = f"{name}_.unpack(*this)"
            if name in self.readers:
                wanted = " || ".join(self.needs[target] for target in self.readers[name])
                value = f"{wanted} ? {value} : Tensor()"
            elif form := self._kept_when(name):
                value = f"{'' if form == 'inplace' else '!'}in_place ? {value} : Tensor()"
            lines.append(f"const Tensor {name} = {value};")
            env[name] = Value(name, "T")
        for name in self.saved.lists:
            lines.append(f"const TensorList {name} = unpack_all({name}_, *this);")
            env[name] = Value(name, "L")
        for tensor, kept in self.saved.metadata.items():
            env |= {f"{tensor}__{m}": Value(f"{tensor}__{m}", METADATA[m][1]) for m in kept}
        return lines, env | {a.name: Value(a.name, a.expr_type) for a in self.saved.values}

    def _replayed(self) -> list[str]:
        """The gradient of a kernel without formulas: its definition, differentiated at saved inputs."""
        op = self.op
        if self.saved.lists:
            raise SchemaError(
                f"{op.where}: {op.name}: a definition over tensor lists cannot be replayed; give 'grad'"
            )
        inputs = self.saved.tensors
        args = []
        for a in op.sig.args:
            value = f"in[{inputs.index(a.name)}]" if a.is_tensor else a.name
            stored_ints = a.type in ("int[]?", "dims?")  # become views again
            args.append(f"expr::opt_ints({value})" if stored_ints else value)
        n = len(op.sig.returns)
        results = "y" if n == 1 else ", ".join(f"std::get<{i}>(y)" for i in range(n))
        tensors = f"TensorList{{{', '.join(inputs)}}}"
        return [
            *self._unpacked()[0],
            f"return autograd::replay({tensors}, grads, [&]([[maybe_unused]] const TensorList& in) {{",
            f"  auto y = definition::{op.ident}({', '.join(args)});",
            f"  return TensorList{{{results}}};",
            "});",
        ]

    def _from_formulas(self) -> list[str]:
        sizes = ("1" if a.is_tensor else f"{a.name}_count" for a in self.edges)
        lines = [f"TensorList out({' + '.join(sizes) or '0'});", *self._result_gradients()]
        unpack, env = self._unpacked()
        lines += unpack
        for gy, r in zip(gy_names(self.op), self.op.sig.returns):
            env[gy] = Value(gy, r.base.expr)
        translator = Translator(
            self.table.overloads, f"{self.op.where}: grad of {self.op.name}", env
        )
        translator.needs = self.needs.__getitem__
        for targets, text in self.op.gradient_groups:
            value = self._gradient(translator, targets, text)
            for held, message in self.op.inplace_check:
                condition = f"!in_place || {translator.condition(held)}"
                lines.append(f"TD_CHECK({condition}, {translator.message(message)});")
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
        lines = [
            f"[[maybe_unused]] Tensor {n} = std::move(grads[{i}]);" for i, n in enumerate(names)
        ]
        lines.append(f"if ({' && '.join(f'!{n}.defined()' for n in names)}) return out;")
        if len(names) > 1:
            groups = op.gradient_groups
            used = set().union(*(_needed_gradients(text, self.table) for _, text in groups))
            lines += [
                f"if (!{n}.defined()) {n} = result_metadata[{i}].zeros();"
                for i, n in enumerate(names)
                if n in used
            ]
        return lines

    def _gradient(self, translator: Translator, targets: list[str], text: str) -> Value:
        op = self.op
        value = translator.expression(from_metadata(text, self.saved.metadata))
        if op.dual_grad:
            value = one_pass(op, targets[0], value, translator, "autograd::differentiated")
        if op.inplace_grad:
            other = translator.expression(from_metadata(op.inplace_grad, self.saved.metadata))
            value = Value(f"in_place ? {other.cpp} : {value.cpp}", "T")
        return value

    def _assigned(self, targets: list[str], value: Value) -> list[str]:
        """Statements that give the arguments `targets` their gradients."""
        name = targets[0]
        index = self.indices[name]
        condition = " || ".join(self.needs[n] for n in targets)
        if len(targets) > 1:
            parts = [
                f"if ({self.needs[n]}) out[{self.indices[n]}] = std::move(std::get<{i}>(parts));"
                for i, n in enumerate(targets)
            ]
            return block(f"if ({condition})", f"auto parts = {value.cpp};", parts)
        if self.op.sig.arg(name).is_tensor_list:
            each = f"for (size_t i = 0; i < part.size() && i < {name}_count; i++)"
            return [
                f"{{ TensorList part = {value.cpp};",
                f"  {each} out[{index} + i] = std::move(part[i]); }}",
            ]
        cpp = {"0": "Tensor()", "T": value.cpp}.get(str(value.type), f"Tensor({value.cpp})")
        return [f"if ({condition}) out[{index}] = {cpp};"]


def _any_reads(texts: list[str], name: str) -> bool:
    """Whether a formula reads the tensor's values."""
    return any(metadata_only(text, name) is None for text in texts)


def _any_requires_grad(names: list[str]) -> str:
    return " || ".join(f"autograd::requires_grad({name})" for name in names) or "false"


def saved_input(op: Op, name: str) -> str:
    """An argument to save; of the one that the call overwrites, a copy."""
    if name == op.sig.args[0].name:
        if op.mutates:
            return f"autograd::copy_for_backward({name})"
        if "inplace" in op.variants and op.body == "pointwise":
            written = f"autograd::is_overwritten({name}, into)"
            return f"{written} ? autograd::copy_for_backward({name}) : {name}"
    return name


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
