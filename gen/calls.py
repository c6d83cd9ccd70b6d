"""The names that Python has for operators, and the overloads behind each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from .op import Op

# Places that know functions of torch (or methods of Tensor) by names of their own, without in-place
# forms: torch.special.expit is torch.sigmoid. "foreach" are the names of taeda._foreach.
BORROWERS = ("special", "foreach")


@dataclass
class Call:
    """One overload of a Python name, in its functional or in-place form."""

    op: Op
    inplace: bool = False

    @property
    def has_out(self) -> bool:
        return "out" in self.op.variants and not self.inplace

    @property
    def function(self) -> str:
        """The C++ function behind it."""
        return f"op::{self.op.ident}" + ("_inplace" if self.inplace else "")


def python_names(ops: list[Op]) -> dict[tuple[str, str], list[Call]]:
    """(owner, name) -> overloads. Owners: torch, Tensor, nn.functional, linalg, ..."""
    found: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for op in ops:
        for place in op.python:
            owner, _, name = place.rpartition(".")
            if owner != "torch":
                owner = owner.removeprefix("torch.")
            found[owner, name].append(Call(op))
            if "inplace" in op.variants and not name.startswith("__") and owner not in BORROWERS:
                found[owner, name + "_"].append(Call(op, inplace=True))
    return dict(sorted(found.items()))


def shown(calls: list[Call]) -> list[Call]:
    """The overloads that users are told of; those of old programs come behind them."""
    told = [c for c in calls if not c.op.hidden]
    if calls[: len(told)] != told:
        raise calls[0].op.fail("a hidden overload has to be the last of its name")
    return told
