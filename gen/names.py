"""Python's names of operators, and the overloads behind each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .op import Op
from .schema import Argument

# Owners of other names for torch's functions and Tensor's methods, without in-place forms:
# torch.special.expit is torch.sigmoid. "foreach" are the names of taeda._foreach.
BORROWERS = ("special", "foreach")
HIDDEN = {"nn.functional": "_C._nn"}  # where in-place forms are that users do not see
OPTIONS = [  # what an `options` argument is in Python
    *(Argument(name, f"{name}?", "None", True) for name in ("dtype", "layout", "device")),
    *(Argument(name, "bool?", "False", True) for name in ("pin_memory", "requires_grad")),
]
# Whose functions are named after them: torch.linalg.inv is called linalg_inv, as in PyTorch.
PREFIXES = ("linalg", "special", "fft")
Attribute = tuple[str, str]  # owner (torch, Tensor, nn.functional, linalg, ...) and name


@dataclass
class Call:
    """One overload of a Python name, in its functional or in-place form."""

    op: Op
    inplace: bool = False

    def __post_init__(self) -> None:
        op = self.op
        self.function = f"op::{op.ident}" + ("_inplace" if self.inplace else "")
        self.has_out = op.out_python and "out" in op.variants and not self.inplace
        self.named = op.named and not self.inplace and not op.mutates  # the result, a tuple
        # What it takes in Python.
        self.arguments = [a for b in op.sig.args for a in (OPTIONS if b.type == "options" else [b])]
        if self.has_out:
            kind = "Tensor?" if len(op.sig.returns) == 1 else "Tensor[]?"
            self.arguments.append(Argument("out", kind, "None", keyword_only=True))


Names = dict[Attribute, list[Call]]


def python_names(ops: list[Op]) -> Names:
    """The overloads of each name."""
    found: Names = defaultdict(list)
    for op in ops:
        for attribute in op.python:
            owner, _, name = attribute.rpartition(".")
            owner = owner.removeprefix("torch.")
            found[owner, name].append(Call(op))
            if "inplace" in op.variants and not name.startswith("__") and owner not in BORROWERS:
                shown = owner == "Tensor" or attribute in op.inplace_python
                if home := owner if shown else HIDDEN.get(owner):
                    found[home, name + "_"].append(Call(op, inplace=True))
    for calls in found.values():  # those of old programs come last, and users are not told of them
        calls.sort(key=lambda call: call.op.hidden)
    return dict(sorted(found.items()))


def own_name(attribute: Attribute) -> str:
    """A function's ``__name__``."""
    owner, name = attribute
    return f"{owner}_{name}" if owner in PREFIXES else name
