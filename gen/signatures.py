"""What Python shows of a function: its docstring, which begins with its signatures."""

from __future__ import annotations

import keyword

from .names import Call, own_name
from .op import Op
from .schema import Argument

RETURNS = {"Tensor[]": "tuple[Tensor, ...]", "int[]": "Size"}


def shown(calls: list[Call]) -> list[Call]:
    """The overloads that users are told of."""
    return [call for call in calls if not call.op.hidden]


def docstring(owner: str, name: str, calls: list[Call]) -> str:
    """Signatures, then the text of the first entry that has an example, or else of the first that
    has any; taeda._foreach has none."""
    if owner == "foreach":
        return ""
    lines = [signature_text(name, call, owner) for call in shown(calls)]
    texts = [call.op.doc.strip() for call in calls if call.op.doc]
    with_example = [text for text in texts if ">>>" in text]
    text = next(iter([*with_example, *texts]), "")
    if calls[0].inplace:
        text = f"In-place version of {name[:-1]}."
    parts = [f"{own_name((owner, name))}({parameters(owner, calls)})\n--\n", *lines]
    if text:
        parts.append(f"\n{text}")
    return "\n".join(parts)


def parameters(owner: str, calls: list[Call]) -> str:
    """What inspect.signature reads from the start of a docstring, which Python takes off again: of
    several overloads the one that has most parameters, with what the others have besides."""
    rows = [_arguments(owner, call) for call in shown(calls)]
    common = set.intersection(*({a.name for a in row} for row in rows))
    chosen = max(rows, key=len)
    others = {a.name: a for row in rows for a in row if a.name not in {b.name for b in chosen}}
    parts: list[str] = []
    wanted = True  # no parameter before has a default
    for a in chosen:
        default = a.default
        if default is None and (a.name not in common or not (wanted or a.keyword_only)):
            default = "None"
        wanted = wanted and default is None
        parts.append(python_name(a) + ("" if default is None else f"={default}"))
    parts = starred(parts, chosen, spread(chosen, owner == "Tensor"))
    if others and not any(part.startswith("*") for part in parts):
        parts.append("*")
    parts += [f"{python_name(a)}={a.default or 'None'}" for a in others.values()]
    if owner == "Tensor":
        parts[0] = "$self"
    return ", ".join(parts)


def spread(args: list[Argument], method: bool) -> Argument | None:
    """The list of integers that may be given as arguments of their own: view(2, 3) for view((2, 3))."""
    own = [a for a in args if not a.keyword_only][method:]
    return own[0] if len(own) == 1 and own[0].base.name in ("int[]", "dims") else None


def python_name(a: Argument) -> str:
    """random_(from, to): nobody can write that name in a call."""
    name = "input" if a.name == "self" else a.name
    return f"{name}_" if keyword.iskeyword(name) else name


def starred(
    parts: list[str], args: list[Argument], sizes: Argument | None = None, kind: str = ""
) -> list[str]:
    """Parameters with a `*`: at `sizes`, or in front of the first that is taken by its name only."""
    if sizes:
        return [f"*{a.name}{kind}" if a is sizes else part for part, a in zip(parts, args)]
    first = next((i for i, a in enumerate(args) if a.keyword_only), None)
    return parts if first is None else [*parts[:first], "*", *parts[first:]]


def _arguments(owner: str, call: Call) -> list[Argument]:  # methods have no `out`
    return call.op.sig.args if owner in ("nn.functional", "Tensor") else call.arguments


def signature_text(name: str, call: Call, owner: str = "") -> str:
    """``add(input: Tensor, other: Tensor | Number, *, alpha: Number = 1, ...) -> Tensor``."""
    args = _arguments(owner, call)
    parts = [_parameter(call.op, a) for a in args]
    parts = starred(parts, args, spread(args, method=False), ": int | Sequence[int]")
    return f"{name}({', '.join(parts)}) -> {returned(call)}"


def returned(call: Call) -> str:
    """The type of the result, a tuple of several."""
    result = ", ".join(RETURNS.get(r.type, r.base.python) for r in call.op.sig.returns)
    return f"tuple[{result}]" if len(call.op.sig.returns) > 1 else result


def annotation(op: Op, a: Argument) -> str:
    """The type of an argument as Python takes it."""
    kind = a.base.python
    if op.accepts_number(a):
        kind += " | Number"
    if a.repeat and a.type.startswith("int[]"):
        kind = "int | " + kind
    if a.optional and a.default != "False":  # None would be False
        kind += " | None"
    return kind


def _parameter(op: Op, a: Argument) -> str:
    return f"{python_name(a)}: {annotation(op, a)}{'' if a.default is None else f' = {a.default}'}"
