"""Operators in C++: the names, parameters and declarations that all generated files agree on."""

from __future__ import annotations

from collections import defaultdict

from . import statements
from .expr import Translator
from .op import Op
from .schema import Argument, Signature
from .values import Value


class Table:
    """The loaded operators, findable by name."""

    def __init__(self, ops: list[Op]):
        self.ops = ops
        self.by_name: dict[str, list[Op]] = defaultdict(list)
        for op in ops:
            self.by_name[op.name].append(op)

    def overloads(self, name: str) -> list[Signature]:
        found = [op.sig for op in self.by_name.get(name, [])]
        if not found and name.endswith("_"):
            plain = self.by_name.get(name[:-1], [])
            found = [inplace_signature(op) for op in plain if "inplace" in op.variants]
        return found

    def takes_none(self, name: str, i: int) -> bool:
        """Whether the `i`th argument of all its overloads is optional."""
        found = self.overloads(name)
        return bool(found) and all(i < len(s.args) and s.args[i].optional for s in found)

    def overload_index(self, op: Op) -> int:
        return self.by_name[op.name].index(op)


def inplace_signature(op: Op) -> Signature:
    """The signature of NAME_ for an entry NAME."""
    args = [Argument(**{**a.__dict__, "mutated": i == 0}) for i, a in enumerate(op.sig.args)]
    return Signature(op.name + "_", op.sig.overload, args, op.sig.returns, op.sig.text)


def parameters(sig: Signature, defaults: bool = False) -> str:
    parts = []
    for a in sig.args:
        default = f" = {a.cpp_default}" if defaults and a.cpp_default is not None else ""
        parts.append(f"{a.cpp_type} {a.name}{default}")
    return ", ".join(parts)


def names(sig: Signature, **replaced: str) -> str:
    return ", ".join(replaced.get(a.name, a.name) for a in sig.args)


def internal_parameters(op: Op) -> str:
    """Parameters of the functions behind the dispatch table."""
    into = "const Tensor& into, " if op.body == "pointwise" else ""
    return "KeySet keys, " + into + parameters(op.sig)


def internal_names(op: Op, keys: str = "keys", into: str = "into", recorded: bool = False) -> str:
    """The arguments of a call to a layer below; what a recorded call sets is true there."""
    middle = [into] if op.body == "pointwise" else []
    args = ("true" if recorded and a.name in op.recorded else a.name for a in op.sig.args)
    return ", ".join([keys, *middle, *args])


def out_names(op: Op) -> list[str]:
    return ["out"] if len(op.sig.returns) == 1 else [f"out_{r.name}" for r in op.sig.returns]


def impl_name(op: Op) -> str:
    return op.source if isinstance(op.source, str) else op.ident


def translator(
    op: Op, table: Table, what: str = "", env: dict[str, Value] | None = None
) -> Translator:
    """Translates the entry's texts, over its arguments or other names."""
    env = env or {a.name: Value(a.name, a.expr_type) for a in op.sig.args}
    return Translator(table.overloads, f"{op.where}: {what}{op.name}", env)


def one_pass(op: Op, target: str, formula: Value, t: Translator, further: str) -> Value:
    """A gradient on dual numbers, or `formula` where `further`, a C++ test of tensors, says that the
    gradient is differentiated in turn."""
    call = t.expression(op.dual_grad[target])
    read = ", ".join(["gy", *(t.env[a.name].cpp for a in op.sig.tensor_args)])
    return Value(f"{further}({read}) ? {formula.cpp} : {call.cpp}", "T")


def composite_body(op: Op, table: Table, text: str) -> list[str]:
    return statements.body(translator(op, table), text, [r.cpp_type for r in op.sig.returns])
