"""The table's operators as functions and methods in a stub."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gen.names import Call, Names
from gen.op import Op
from gen.schema import Argument
from gen.signatures import annotation, python_name, returned, shown, spread, starred

_NAME = re.compile(
    r"\b(int|float|bool|complex|str|dtype|device|layout|memory_format|Number|Device)\b"
)


def aliased(annotation: str) -> str:
    """int as _int: within Tensor, int is a method, and in the package a dtype."""
    return _NAME.sub(r"_\1", annotation)


def _parameter(op: Op, a: Argument) -> str:
    default = "..." if a.base.name == "memory_format" and a.default != "None" else a.default
    kind = aliased(annotation(op, a))
    return f"{python_name(a)}: {kind}" + ("" if default is None else f" = {default}")


def _signatures(name: str, call: Call, method: bool) -> list[str]:
    """The declarations of one overload: two where its sizes may be arguments of their own.

    A method has no `out` here: ours takes one, but programs for both frameworks cannot give it.
    """
    args = [a for a in call.arguments if not (method and a.name == "out")]
    parts = [_parameter(call.op, a) for a in args]
    if method:
        parts[0] = "self"
    result = aliased(_result(call, method))
    rows = [starred(parts, args)]
    if sizes := spread(args, method):
        rows.append(starred(parts, args, sizes, ": _int"))
    return [f"def {name}({', '.join(row)}) -> {result}: ..." for row in rows]


def _result(call: Call, method: bool) -> str:
    if method and (call.inplace or call.op.mutates):
        return "Self"
    return f"_return_types.{call.op.name}" if call.named else returned(call)


def _documented(row: str, call: Call) -> list[str]:
    """A declaration with what editors show of it: how the table's text begins."""
    text = call.op.doc.strip().split("\n>>>")[0].split("\n\n")[0]
    if not text:
        return [row]
    quoted = text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    lines = f'"""{quoted}"""'.split("\n")
    return [row.removesuffix(" ..."), *(f"    {line}" if line else "" for line in lines)]


def declarations(name: str, calls: list[Call], method: bool = False) -> list[str]:
    """All overloads; the first one, of a public form that returns a new tensor, has the
    documentation."""
    rows = {row: call for call in shown(calls) for row in _signatures(name, call, method)}
    (first, call), *others = rows.items()
    head = [first] if name.startswith("_") or name.endswith("_") else _documented(first, call)
    if not others:
        return head
    return ["@overload", *head, *(line for row, _ in others for line in ("@overload", row))]


def module(names: Names, owner: str, without: Iterable[str] = ()) -> list[str]:
    """The functions of a module."""
    out = []
    for (place, name), calls in names.items():
        if place == owner and name not in without:
            out += declarations(name, calls)
    return out
