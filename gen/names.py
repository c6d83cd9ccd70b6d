"""Python's names of operators: the overloads behind each, the arguments that they take, and what
Python shows of them (docstrings, signatures, the type stubs of taeda._C)."""

from __future__ import annotations

import itertools
import keyword
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from .op import Op
from .schema import Argument

STUB_HEAD = Path(__file__).with_name("stub_head.pyi.in")
RETURNS = {"Tensor[]": "tuple[Tensor, ...]", "int[]": "Size"}
# Places that know functions of torch (or methods of Tensor) by names of their own, without in-place
# forms: torch.special.expit is torch.sigmoid. "foreach" are the names of taeda._foreach.
BORROWERS = ("special", "foreach")
INTERNAL = {"nn.functional": "_C._nn"}  # where in-place forms are that users do not see
OPTIONS = [  # what an `options` argument is in Python
    Argument("dtype", "dtype?", "None", keyword_only=True),
    Argument("layout", "layout?", "None", keyword_only=True),
    Argument("device", "device?", "None", keyword_only=True),
    Argument("pin_memory", "bool?", "False", keyword_only=True),
    Argument("requires_grad", "bool?", "False", keyword_only=True),
]
Place = tuple[str, str]  # owner (torch, Tensor, nn.functional, linalg, ...) and name


@dataclass
class Call:
    """One overload of a Python name, in its functional or in-place form."""

    op: Op
    inplace: bool = False

    @property
    def function(self) -> str:
        """The C++ function behind it."""
        return f"op::{self.op.ident}" + ("_inplace" if self.inplace else "")

    @property
    def has_out(self) -> bool:
        return "out" in self.op.variants and not self.inplace

    @property
    def arguments(self) -> list[Argument]:
        """What it takes in Python."""
        given = []
        for a in self.op.sig.args:
            given += OPTIONS if a.type == "options" else [a]
        kind = "Tensor?" if len(self.op.sig.returns) == 1 else "Tensor[]?"
        return [*given, Argument("out", kind, "None", keyword_only=True)] if self.has_out else given

    def accepts_number(self, a: Argument) -> bool:
        written = self.inplace and a is self.op.sig.args[0]
        return self.op.accepts_number(a) and not written


def python_names(ops: list[Op]) -> dict[Place, list[Call]]:
    """The overloads of each name."""
    found: dict[Place, list[Call]] = defaultdict(list)
    for op in ops:
        for place in op.python:
            owner, _, name = place.rpartition(".")
            if owner != "torch":
                owner = owner.removeprefix("torch.")
            found[owner, name].append(Call(op))
            if "inplace" in op.variants and not name.startswith("__") and owner not in BORROWERS:
                inside = owner == "Tensor" or place in op.inplace_python
                if inside or owner in INTERNAL:
                    home = owner if inside else INTERNAL[owner]
                    found[home, name + "_"].append(Call(op, inplace=True))
    return dict(sorted(found.items()))


def shown(calls: list[Call]) -> list[Call]:
    """The overloads that users are told of; those of old programs come behind them."""
    told = [c for c in calls if not c.op.hidden]
    if calls[: len(told)] != told:
        raise calls[0].op.fail("a hidden overload has to be the last of its name")
    return told


# --- what is shown ---


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


def _annotation(result: Argument) -> str:
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
