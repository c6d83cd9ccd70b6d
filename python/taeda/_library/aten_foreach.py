"""PyTorch's operators on lists of tensors, `torch.ops.aten._foreach_add` and the like: as which a
TorchDispatchMode sees calls of `torch._foreach_add`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C
from taeda._foreach import _fits, _forms, _functions, _reductions

from .spelling import define

# Of each kind of argument: the overload's name where it is the last, its type, its name for most.
_KINDS = {
    "number": ("Scalar", "Scalar", "scalar"),
    "tensors": ("List", "Tensor[]", "other"),
    "numbers": ("ScalarList", "Scalar[]", "scalars"),
    "tensor": ("Tensor", "Tensor", "other"),
    "bool": ("", "bool", ""),
}
#: `torch._foreach_NAME` -> its forms: the form's text, the operator.
OPERATORS: dict[str, list[tuple[str, Any]]] = {}


def _argument(text: str) -> str:
    """ "[value: number]" -> "Scalar value=1" """
    names, kind = text.strip("[]").split(": ")
    name = _KINDS[kind][2] if "|" in names else names
    default = {"number": "=1", "bool": "=False"}[kind] if text[0] == "[" else ""
    return f"{_KINDS[kind][1]} {name}{default}"


def _schema(name: str, form: str, in_place: bool) -> str:
    parts = [part.strip() for part in form.split(",")] if form else []
    kind = parts[-1].strip("[]").split(": ")[1] if parts else "bool"
    overload = _KINDS[kind][0] and "." + _KINDS[kind][0]
    has_alpha = name in ("add", "sub") and kind in ("tensors", "tensor")
    arguments = ["Tensor(a!)[] self" if in_place else "Tensor[] self", *map(_argument, parts)]
    arguments += ["*", "Scalar alpha=1"] if has_alpha else []
    suffix, result = ("_", "()") if in_place else ("", "Tensor[]")
    return f"_foreach_{name}{suffix}{overload}({', '.join(arguments)}) -> {result}"


def _requires_grad(tensors: Any) -> bool:
    return isinstance(tensors, list) and any(getattr(x, "requires_grad", False) for x in tensors)


def _defined(schema: str, loop: Callable) -> Any:
    """The operator, which runs `loop` below modes; autograd records what that calls."""
    in_place = schema.endswith("()")

    def run(*args: Any, **kwargs: Any) -> Any:
        result = loop(*args, **kwargs)
        return None if in_place else list(result)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        if taeda.is_grad_enabled() and any(_requires_grad(arg) for arg in args):
            return run(*args, **kwargs)
        return op._redispatch_below("Autograd", args, kwargs)

    op = define(schema, recorded)(run)
    return op


def _add(name: str, suffix: str, loop: Callable) -> None:
    # A tensor is one for all before it is a number, but of add without alpha, as in PyTorch.
    forms = sorted(_forms(name), key=lambda f: name == "add" or not f.endswith(": tensor"))
    public = f"_foreach_{name}{suffix}"
    OPERATORS[public] = [(f, _defined(_schema(name, f, suffix == "_"), loop)) for f in forms]


for _name in _C._by_owner["foreach"]:  # one that ends in _ is in place only
    _loops = _functions(_name.removesuffix("_"))
    if not _name.endswith("_"):
        _add(_name, "", _loops[0])
    _add(_name.removesuffix("_"), "_", _loops[1])
for _text, _form, _loop in _reductions():
    OPERATORS[_text.split("(")[0].split(".")[0]] = [(_form, _defined(_text, _loop))]


def seen(name: str, self: Any, args: tuple, options: dict) -> tuple[Any, tuple, dict] | None:
    """The operator and the arguments as which a call of `torch._foreach_NAME` is seen; None for
    calls that it refuses."""
    alpha = {"alpha": options["alpha"]} if "alpha" in options else {}
    rest = {k: v for k, v in options.items() if k != "alpha"}
    for form, op in OPERATORS[name]:
        known = {argument.name for argument in op._schema.arguments}
        found = _fits(form, args, rest)
        if found is not None and alpha.keys() <= known:
            return op, (self, *found), alpha
    return None
