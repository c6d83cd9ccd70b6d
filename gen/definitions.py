"""What a definition must fulfil: it translates, and it does not lead back to its own operator.

Of the definitions beside kernels only those are compiled that autograd replays. The others are text
that tests evaluate; they are translated here all the same, so that a name or type that is wrong
stops the generator.
"""

from __future__ import annotations

import re

from .cpp import Table, composite_body

CALLED = re.compile(r"\bop::(\w+)")


def check(table: Table) -> None:
    """Raises SchemaError for the first definition that is none."""
    calls = {
        op.ident: set(CALLED.findall("\n".join(composite_body(op, table, op.expr))))
        for op in table.ops
        if op.expr
    }
    for op in table.ops:
        if op.is_leaf and op.ident in _reached(op.ident, calls):
            raise op.fail("the definition leads back to the operator")


def _reached(start: str, calls: dict[str, set[str]]) -> set[str]:
    """The operators that a definition stands on, through other definitions and composites."""
    found: set[str] = set()
    front = [start]
    while front:
        new = calls.get(front.pop(), set()) - found
        found |= new
        front += new
    return found
