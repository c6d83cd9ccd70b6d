"""Stubs of torch._foreach_add and the like, from the operators that they are loops over."""

from __future__ import annotations

from gen.names import Names
from gen.op import Op

_LISTS = "Sequence[Tensor]"
# The last argument: a number, a list of tensors or of numbers, and of some a tensor, for all.
_SECOND = ("{0}: _Number", "{1}: Sequence[Tensor]", "{2}: Sequence[_Number]", "{1}: Tensor")
_ALPHA = ", *, alpha: _Number = 1"
_REDUCTIONS = {
    "norm": "ord: _Number = 2, dtype: _dtype | None = None",
    "powsum": "ord: _Number = 2, dtype: _dtype | None = None",
    "max": "",
    "mm": f"mat2: {_LISTS}",
    "clone": "*, memory_format: _memory_format | None = None",
}


def _forms(name: str, op: Op) -> list[str]:
    """The arguments after the first, by overload."""
    given = [a.name for a in op.sig.args[1:] if not a.keyword_only]
    if name == "copy_":
        return [f"src: {_LISTS}, non_blocking: _bool = False"]
    if not given:
        return [""]
    if any(a.name == "value" for a in op.sig.args):
        tensors = f"tensor1: {_LISTS}, tensor2: {_LISTS}, "
        last = ("value: _Number = 1", "scalars: Sequence[_Number]", "scalars: Tensor")
        return [tensors + text for text in last]
    if len(given) == 2:
        weights = (f"weights: {_LISTS}", "weight: _Number", "weight: Sequence[_Number]")
        return [f"tensors1: {_LISTS}, {text}" for text in weights]
    named = ("exponent",) * 3 if given == ["exponent"] else ("scalar", "other", "scalars")
    forms = [text.format(*named) for text in _SECOND[: 4 if name in ("add", "mul", "div") else 3]]
    has_alpha = name in ("add", "sub")
    return [f"{f}{_ALPHA}" if has_alpha and f.startswith("other") else f for f in forms]


def _declared(name: str, forms: list[str], result: str) -> list[str]:
    each = (f"def {name}(self: {_LISTS}{', ' if f else ''}{f}) -> {result}: ..." for f in forms)
    rows = [*each]
    if name == "_foreach_pow":
        rows.append(f"def {name}(self: _Number, exponent: {_LISTS}) -> {result}: ...")
    return rows if len(rows) == 1 else [line for row in rows for line in ("@overload", row)]


def functions(names: Names) -> dict[str, list[str]]:
    """The declarations of each; what is written in place is given back."""
    new, found = "tuple[Tensor, ...]", {}
    for (owner, own_name), calls in names.items():
        if owner == "foreach":
            forms, name = _forms(own_name, calls[0].op), own_name.removesuffix("_")
            if name == own_name:
                found[f"_foreach_{name}"] = _declared(f"_foreach_{name}", forms, new)
            found[f"_foreach_{name}_"] = _declared(f"_foreach_{name}_", forms, _LISTS)
    for own_name, arguments in _REDUCTIONS.items():
        name = f"_foreach_{own_name}"
        found[name] = _declared(name, [arguments], new)
    return found
