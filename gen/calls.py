"""Python's names of operators, the overloads behind each, and the arguments that they take."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .op import Op
from .schema import Argument

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
