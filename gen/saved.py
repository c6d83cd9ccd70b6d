"""What the backward node of an operator keeps: tensors, results, values, or only what is known of a
tensor whose values no formula reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from .expr import metadata_only, names_used
from .schema import Argument
from .table import Op, gradient_groups


@dataclass
class Saved:
    """What one node keeps."""

    tensors: list[str] = field(default_factory=list)  # argument names
    lists: list[str] = field(default_factory=list)  # tensor-list arguments
    results: list[str] = field(default_factory=list)
    facts: dict[str, set[str]] = field(default_factory=dict)  # tensor -> sizes, dtype, ...
    values: list[Argument] = field(default_factory=list)


def replays(op: Op) -> bool:
    return op.grad is None and op.expr is not None


def gy_names(op: Op) -> list[str]:
    returns = op.sig.returns
    return ["gy"] if len(returns) == 1 else [f"gy_{r.name}" for r in returns]


def find_saved(op: Op) -> Saved:
    saved = Saved()
    if replays(op):
        saved.tensors = [a.name for a in op.sig.args if a.is_tensor]
        saved.lists = [a.name for a in op.sig.args if a.is_tensor_list]
        saved.values = [a for a in op.sig.args if not a.is_tensor and not a.is_tensor_list]
        return saved
    texts = formulas(op)
    used = set().union(*(names_used(t) for t in texts)) if texts else set()
    for a in op.sig.args:
        if a.name not in used or a.name in gy_names(op):
            continue
        if a.is_tensor or a.is_tensor_list:
            whole, facts = _what_is_read(texts, a.name)
            if whole:
                (saved.lists if a.is_tensor_list else saved.tensors).append(a.name)
            if facts:
                saved.facts[a.name] = facts
        else:
            saved.values.append(a)
    for r in op.sig.returns:
        if r.name not in used or r.name in [a.name for a in op.sig.args]:
            continue
        whole, facts = _what_is_read(texts, r.name)
        if whole:
            saved.results.append(r.name)
        if facts:
            saved.facts[r.name] = facts
    return saved


def formulas(op: Op) -> list[str]:
    texts = [*(text for _, text in gradient_groups(op)), *op.dual_grad.values()]
    return [*texts, op.inplace_grad] if op.inplace_grad else texts


def _what_is_read(texts: list[str], name: str) -> tuple[bool, set[str]]:
    """Whether some formula reads the tensor's values, and the facts that suffice the others."""
    found = [metadata_only(text, name) for text in texts]
    return None in found, set().union(*(facts for facts in found if facts))


def keeps_first_input(op: Op) -> bool:
    """Whether backward may read the values of the first argument, as they were before the call."""
    return not op.dispatched or op.sig.args[0].name in find_saved(op).tensors
