"""What a definition must fulfil: it translates, and it does not lead back to its own operator.

Of the definitions beside kernels only those are compiled that autograd replays. The others are text
that tests evaluate; they are translated here all the same, so that a name or type that is wrong
stops the generator.
"""

from __future__ import annotations

from . import statements
from .cpp import Table, translator
from .op import Op


def check(table: Table) -> None:
    """Raises SchemaError for the first definition that is none."""
    calls = {op.ident: _called(op, table) for op in table.ops if op.expr}
    for op in table.ops:
        if op.is_leaf and op.ident in _reached(op.ident, calls):
            raise op.fail("the definition leads back to the operator")


def _called(op: Op, table: Table) -> set[str]:
    t = translator(op, table)
    statements.body(t, op.expr or "", [r.cpp_type for r in op.sig.returns])
    return t.called


def _reached(start: str, calls: dict[str, set[str]]) -> set[str]:
    """The operators that a definition stands on, through other definitions and composites."""
    found: set[str] = set()
    front = [start]
    while front:
        new = calls.get(front.pop(), set()) - found
        found |= new
        front += new
    return found
