"""What Python shows of operators: docstrings, signatures and the type stubs of taeda._C."""

from __future__ import annotations

import itertools
import keyword
from pathlib import Path

from .calls import Call, python_names, shown
from .op import Op
from .schema import Argument, Return

STUB_HEAD = Path(__file__).with_name("stub_head.pyi.in")
RETURNS = {"Tensor[]": "tuple[Tensor, ...]", "int[]": "Size"}


def docstring(name: str, calls: list[Call]) -> str:
    """Signatures, then the text of the first entry that has one."""
    lines = [signature_text(name, call) for call in shown(calls)]
    doc = next((c.op.doc.strip() for c in calls if c.op.doc), "")
    if calls[0].inplace:
        doc = f"In-place version of {name[:-1]}."
    return "\n".join(lines) + ("\n\n" + doc if doc else "")


def text_signature(name: str, calls: list[Call]) -> str:
    """What inspect.signature reads from the start of a docstring; Python takes it off again.

    PyTorch's nn.functional is written in Python, so programs look at its parameters.
    """
    if len(calls) > 1:  # Python knows one signature a function
        return ""
    args = calls[0].op.sig.args
    parts = [_shown_name(a) + ("" if a.default is None else f"={a.default}") for a in args]
    return f"{name}({', '.join(_starred(parts, args))})\n--\n\n"


def _starred(parts: list[str], args: list[Argument]) -> list[str]:
    """Parameters with the `*` in front of the first that is taken by its name only."""
    first = next((i for i, a in enumerate(args) if a.keyword_only), None)
    return parts if first is None else [*parts[:first], "*", *parts[first:]]


def _shown_name(a: Argument) -> str:
    return "input" if a.name == "self" else a.name


def signature_text(name: str, call: Call, method: bool = False) -> str:
    """``add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, ...) -> Tensor``."""
    args, returns = call.arguments, call.op.sig.returns
    parts = [_parameter(call.op, a) for a in args]
    if method:
        parts[0] = "self"
    own = [a for a in args if not a.keyword_only][method:]
    if len(own) == 1 and own[0].base.name in (
        "int[]",
        "dims",
    ):  # view(2, 3) as well as view((2, 3))
        parts[args.index(own[0])] = f"*{own[0].name}: int | Sequence[int]"
    else:
        parts = _starred(parts, args)
    result = ", ".join(_annotation(r) for r in returns)
    if len(returns) > 1:
        result = f"tuple[{result}]"
    return f"{name}({', '.join(parts)}) -> {result}"


def _parameter(op: Op, a: Argument) -> str:
    kind = a.base.python
    if op.accepts_number(a):
        kind += " | Number"
    if a.repeat and a.type.startswith("int[]"):
        kind = "int | " + kind
    if a.optional and a.default != "False":  # None would be False
        kind += " | None"
    name = _shown_name(a)
    if keyword.iskeyword(name):  # random_(from, to): nobody can write that name in a call
        name += "_"
    return f"{name}: {kind}" + ("" if a.default is None else f" = {a.default}")


def _annotation(result: Return) -> str:
    return RETURNS.get(result.type) or result.base.python


def stubs(ops: list[Op]) -> str:
    """Type stubs of every generated function, grouped by owner, for taeda/_C.pyi."""
    out = [STUB_HEAD.read_text()]
    by_owner = itertools.groupby(python_names(ops).items(), lambda item: item[0][0])
    for owner, entries in by_owner:
        method = owner == "Tensor"
        title = "Tensor(_TensorMembers)" if method else "_" + owner.replace(".", "_")
        out.append(f"class {title}:")
        for (_, name), calls in entries:
            for call in shown(calls):
                if len(shown(calls)) > 1:
                    out.append("    @overload")
                if not method:
                    out.append("    @staticmethod")
                out.append(f"    def {signature_text(name, call, method)}: ...")
        out.append("")
    return "\n".join(out)
