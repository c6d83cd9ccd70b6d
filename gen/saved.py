"""What formulas read of tensors, and so what a backward node keeps: tensors, results, values, or
only metadata of a tensor whose values no formula reads."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from .op import Op
from .schema import Argument

# C++ type of what is kept, the type in expressions, and PyTorch's name where its nodes show it.
METADATA = {
    "sizes": ("DimVector", "N", "sym_sizes"),
    "dtype": ("DType", "D", "scalar_type"),
    "dim": ("int64_t", "I", "dim"),
    "numel": ("int64_t", "I", ""),
    "strides": ("DimVector", "N", "sym_strides"),
    "storage_offset": ("int64_t", "I", ""),
    "device": ("Device", "V", ""),
    "is_complex": ("bool", "B", ""),
    "layouts": ("TensorList", "L", ""),  # of a list: tensors without memory
}


# --- formulas ---


def _names(tree: ast.AST) -> Iterator[ast.Name]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Name))


def names_used(text: str) -> set[str]:
    """Every plain name in an expression or body."""
    return {node.id for node in _names(ast.parse(text))}


def names_needed(text: str, takes_none: Callable[[str, int], bool]) -> set[str]:
    """Those that do not only stand where `takes_none`: a function's name, an argument's index."""
    tree = ast.parse(text.strip())
    optional: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(function), args):
                optional |= {arg for i, arg in enumerate(args) if takes_none(function, i)}
    return {name.id for name in _names(tree) if name not in optional}


def _read_metadata(node: ast.AST) -> tuple[ast.Name, str] | None:
    """x and "sizes" of ``x.sizes()``."""
    match node:
        case ast.Call(ast.Attribute(ast.Name() as owner, name), []) if name in METADATA:
            return owner, name
    return None


def metadata_only(text: str, name: str) -> set[str] | None:
    """The metadata (sizes, dtype, ...) of tensor `name` in `text`; None where it uses more."""
    found: set[str] = set()
    harmless: set[ast.AST] = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        read = _read_metadata(node)
        if read and read[0].id == name:
            found.add(read[1])
            harmless.add(read[0])
        match node:
            case ast.Call(ast.Name("needs"), [argument]):
                harmless.add(argument)
    rest = (node for node in _names(tree) if node.id == name and node not in harmless)
    return None if any(rest) else found


def reads_once(text: str, name: str, pointwise: Callable[[str], bool]) -> bool:
    """Whether every way through `text` reads `name` once, as an argument of an operator that
    `pointwise` (of its name; signs are) says computes element by element."""
    tree = ast.parse(text.strip())
    direct = [arg for node in ast.walk(tree) for arg in _operands(node, pointwise)]
    return _most_reads(tree, name) == 1 and all(
        node in direct for node in _names(tree) if node.id == name
    )


def _operands(node: ast.AST, pointwise: Callable[[str], bool]) -> list[ast.expr]:
    match node:
        case ast.BinOp(left, _, right):
            return [left, right]
        case ast.UnaryOp(ast.USub(), operand):
            return [operand]
        case ast.Call(ast.Name(name), args) if pointwise(name):
            return args
    return []


def _most_reads(node: ast.AST, name: str) -> int:
    """How often the longest way through a formula reads `name`."""
    match node:
        case ast.Name(found):
            return found == name
        case ast.IfExp(test, body, orelse):
            return _most_reads(test, name) + max(_most_reads(e, name) for e in (body, orelse))
    return sum(_most_reads(child, name) for child in ast.iter_child_nodes(node))


# --- nodes ---


@dataclass
class Saved:
    """What one node keeps."""

    args: list[Argument] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    metadata: dict[str, set[str]] = field(default_factory=dict)  # tensor -> sizes, dtype, ...


def gy_names(op: Op) -> list[str]:
    returns = op.sig.returns
    return ["gy"] if len(returns) == 1 else [f"gy_{r.name}" for r in returns]


def formulas(op: Op) -> list[str]:
    texts = [*(text for _, text in op.gradient_groups), *op.dual_grad.values()]
    return [*texts, op.inplace_grad] if op.inplace_grad else texts


def find_saved(op: Op) -> Saved:
    saved = Saved()
    args = {a.name: a for a in op.sig.args}
    for name, (whole, metadata) in _what_is_read(op).items():
        arg = args.get(name)
        if arg and (whole or arg not in op.sig.tensors):
            saved.args.append(arg)
        elif whole:
            saved.results.append(name)
        if metadata and not (arg and arg not in op.sig.tensors):
            saved.metadata[name] = metadata
    keepdim = args.get("keepdim")
    if keepdim and keepdim not in saved.args:  # read by no gradient, but shown by PyTorch
        saved.args.append(keepdim)
    return saved


def _what_is_read(op: Op) -> dict[str, tuple[bool, set[str]]]:
    """By name: whether some formula reads the tensor's values, and the metadata that suffices the
    others. Names that none uses are left out."""
    names = [a.name for a in op.sig.args]
    if op.replays_backward:
        return dict.fromkeys(names, (True, set()))
    texts = formulas(op)
    used = set().union(*(names_used(text) for text in texts)).difference(gy_names(op))
    out = {}
    for name in dict.fromkeys([*names, *(r.name for r in op.sig.returns)]):
        if name in used:
            found = [metadata_only(text, name) for text in texts]
            out[name] = None in found, set().union(*(metadata for metadata in found if metadata))
    return out


def keeps_first_input(op: Op) -> bool:
    """Whether backward may read the values of the first argument, as they were before the call."""
    return not op.dispatched or op.sig.args[0] in find_saved(op).args
