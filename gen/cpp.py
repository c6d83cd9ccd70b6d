"""The loaded table, and the translation of its entries' texts over it."""

from __future__ import annotations

from collections import defaultdict

from . import statements
from .expr import Translator
from .op import Op
from .schema import Signature
from .values import Value


class Table:
    """The loaded operators, findable by name."""

    def __init__(self, ops: list[Op]):
        self.ops = ops
        self.called: set[str] = set()  # the overloads that translated texts call
        self.by_name: dict[str, list[Op]] = defaultdict(list)
        for op in ops:
            self.by_name[op.name].append(op)

    def overloads(self, name: str) -> list[Signature]:
        return [op.sig for op in self.by_name.get(name, [])]

    def takes_none(self, name: str, i: int) -> bool:
        """Whether the `i`th argument of all its overloads is optional."""
        found = self.overloads(name)
        return bool(found) and all(i < len(s.args) and s.args[i].optional for s in found)

    def is_pointwise(self, name: str) -> bool:
        return any(op.body == "pointwise" for op in self.by_name.get(name, []))

    def overload_index(self, op: Op) -> int:
        return self.by_name[op.name].index(op)

    def check_definitions(self) -> None:
        """Raises SchemaError for the first definition that does not translate, or leads back to its
        own operator.

        Of the definitions beside kernels only those are compiled that autograd replays. The others
        are text that tests evaluate, in which a wrong name or type stops the generator all the same.
        """
        called = {}
        for op in self.ops:
            if op.expr:
                self.called.clear()
                composite_body(op, self, op.expr)
                called[op.ident] = {*self.called}
        self.called.clear()
        for op in self.ops:
            if op.is_leaf and op.ident in _reached(op.ident, called):
                raise op.fail("the definition leads back to the operator")


def _reached(start: str, called: dict[str, set[str]]) -> set[str]:
    """The operators that a definition stands on, through other definitions and composites."""
    found: set[str] = set()
    front = [start]
    while front:
        new = called.get(front.pop(), set()) - found
        found |= new
        front += new
    return found


def translator(
    op: Op, table: Table, what: str = "", env: dict[str, Value] | None = None
) -> Translator:
    """Translates the entry's texts, over its arguments or other names."""
    env = env or {a.name: Value(a.name, a.expr_type) for a in op.sig.args}
    return Translator(table.overloads, f"{op.where}: {what}{op.name}", env, table.called)


def one_pass(op: Op, target: str, formula: Value, t: Translator) -> Value:
    """A gradient on dual numbers, or `formula` where the gradient is differentiated in turn."""
    call = t.expression(op.dual_grad[target])
    read = ", ".join(["gy", *(t.env[a.name].cpp for a in op.sig.tensor_args)])
    return Value(f"autograd::differentiated_anywhere({read}) ? {formula.cpp} : {call.cpp}", "T")


def composite_body(op: Op, table: Table, text: str) -> list[str]:
    return statements.body(translator(op, table), text, [r.stored_type for r in op.sig.returns])
