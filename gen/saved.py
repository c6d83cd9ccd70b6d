"""What the backward node of an operator keeps: tensors, results, values, or only what is known of a
tensor whose values no formula reads."""

from __future__ import annotations

from dataclasses import dataclass, field

from .op import Op
from .reads import metadata_only, names_used
from .schema import Argument


@dataclass
class Saved:
    """What one node keeps."""

    tensors: list[str] = field(default_factory=list)  # argument names
    lists: list[str] = field(default_factory=list)  # tensor-list arguments
    results: list[str] = field(default_factory=list)
    metadata: dict[str, set[str]] = field(default_factory=dict)  # tensor -> sizes, dtype, ...
    values: list[Argument] = field(default_factory=list)

    @property
    def single(self) -> list[str]:
        """Everything that is one tensor."""
        return [*self.tensors, *self.results]


def gy_names(op: Op) -> list[str]:
    returns = op.sig.returns
    return ["gy"] if len(returns) == 1 else [f"gy_{r.name}" for r in returns]


def find_saved(op: Op) -> Saved:
    saved = Saved()
    args = {a.name: a for a in op.sig.args}
    if op.replays_backward:
        read = dict.fromkeys(args, (True, set[str]()))
    else:
        named = [*args, *(r.name for r in op.sig.returns if r.name not in args)]
        read = _what_is_read(formulas(op), [n for n in named if n not in gy_names(op)])
    for name, (whole, metadata) in read.items():
        arg = args.get(name)
        if arg and not arg.is_tensor and not arg.is_tensor_list:
            saved.values.append(arg)
            continue
        if whole:
            kept = saved.lists if arg and arg.is_tensor_list else saved.tensors
            (kept if arg else saved.results).append(name)
        if metadata:
            saved.metadata[name] = metadata
    if "keepdim" in args and "keepdim" not in read:  # read by no gradient, but shown by PyTorch
        saved.values.append(args["keepdim"])
    return saved


def formulas(op: Op) -> list[str]:
    texts = [*(text for _, text in op.gradient_groups), *op.dual_grad.values()]
    return [*texts, op.inplace_grad] if op.inplace_grad else texts


def _what_is_read(texts: list[str], names: list[str]) -> dict[str, tuple[bool, set[str]]]:
    """By name: whether some formula reads the tensor's values, and the metadata that suffices the
    others. Names that none uses are left out."""
    used = set().union(*(names_used(text) for text in texts))
    out = {}
    for name in names:
        if name in used:
            found = [metadata_only(text, name) for text in texts]
            out[name] = None in found, set().union(*(metadata for metadata in found if metadata))
    return out


def keeps_first_input(op: Op) -> bool:
    """Whether backward may read the values of the first argument, as they were before the call."""
    return not op.dispatched or op.sig.args[0].name in find_saved(op).tensors
