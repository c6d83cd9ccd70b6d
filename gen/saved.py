"""What formulas read of tensors, and so what a backward node keeps: tensors, results, values, or
only metadata of a tensor whose values no formula reads."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable
from functools import cache

from .op import Op
from .schema import Argument

# What may be kept of a tensor instead of it; of a list `layouts`, tensors without memory.
METADATA = {*"sizes dtype dim numel strides storage_offset device is_complex layouts".split()}
# What of it PyTorch's nodes show, and by which name.
SHOWN = {"sizes": "sym_sizes", "strides": "sym_strides", "dtype": "scalar_type", "dim": "dim"}


# --- formulas ---


@cache
def reads(text: str) -> dict[str, set[str]]:
    """What an expression or body reads, by plain name: a tensor's metadata (sizes, dtype, ...), ""
    for its values, nothing where it only asks whether the gradient is wanted."""
    found: dict[str, set[str]] = defaultdict(set)
    harmless: set[ast.AST] = set()
    for node in ast.walk(ast.parse(text.strip())):  # what surrounds a name comes before it
        match node:
            case ast.Call(ast.Attribute(ast.Name(name) as owner, read), []) if read in METADATA:
                found[name].add(read)
                harmless.add(owner)
            case ast.Call(ast.Name("needs"), [ast.Name(name) as argument]):
                found[name].update()
                harmless.add(argument)
            case ast.Name(name) if node not in harmless:
                found[name].add("")
    return dict(found)


def names_needed(text: str, takes_none: Callable[[str, int], bool]) -> set[str]:
    """Those that do not only stand where `takes_none`: a function's name, an argument's index."""
    tree = ast.parse(text.strip())
    optional: set[ast.AST] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(ast.Name(function), args):
                optional |= {arg for i, arg in enumerate(args) if takes_none(function, i)}
    names = (node for node in ast.walk(tree) if isinstance(node, ast.Name))
    return {name.id for name in names if name not in optional}


def reads_once(text: str, name: str, pointwise: Callable[[str], bool]) -> bool:
    """Whether every way through `text` reads `name` once, as an argument of an operator that
    `pointwise` (of its name; signs are) says computes element by element."""

    def count(node: ast.AST, operand: bool = False) -> int:
        """How often the longest way does; a read elsewhere counts twice."""
        operands: list[ast.expr] = []
        match node:
            case ast.Name(found):
                return 0 if found != name else 1 if operand else 2
            case ast.IfExp(test, body, orelse):
                return count(test) + max(count(body), count(orelse))
            case ast.BinOp(left, _, right):
                operands = [left, right]
            case ast.UnaryOp(ast.USub(), value):
                operands = [value]
            case ast.Call(ast.Name(function), args) if pointwise(function):
                operands = args
        return sum(count(child, child in operands) for child in ast.iter_child_nodes(node))

    return count(ast.parse(text.strip())) == 1


# --- nodes ---


def reads_values(text: str, name: str) -> bool:
    """Whether a formula reads the tensor's values."""
    return "" in reads(text).get(name, ())


def gy_names(op: Op) -> list[str]:
    return [f"gy_{r.name}" for r in op.sig.returns] if len(op.sig.returns) > 1 else ["gy"]


def formulas(op: Op) -> list[str]:
    texts = [*(text for _, text in op.gradient_groups), *op.dual_grad.values()]
    return [*texts, op.inplace_grad] if op.inplace_grad else texts


class Saved:
    """What one node keeps."""

    def __init__(self, op: Op):
        self.args: list[Argument] = []
        self.results: list[str] = []
        self.metadata: dict[str, set[str]] = {}  # tensor -> sizes, dtype, ...
        args = {a.name: a for a in op.sig.args}
        texts = [reads(text) for text in formulas(op)]
        gradients = gy_names(op)
        if op.replays_backward:
            texts, gradients = [{name: {""} for name in args}], []
        for name in dict.fromkeys([*args, *(r.name for r in op.sig.returns)]):
            found = [read[name] for read in texts if name in read and name not in gradients]
            arg, read = args.get(name), set().union(*found)
            number = arg is not None and arg not in op.sig.tensors
            if arg and (found if number else "" in read):
                self.args.append(arg)
            elif "" in read:
                self.results.append(name)
            # A formula that reads a tensor's values finds its metadata there.
            metadata = set().union(*(read for read in found if "" not in read))
            if metadata and not number:
                self.metadata[name] = metadata
        keepdim = args.get("keepdim")
        if keepdim and keepdim not in self.args:  # read by no gradient, but shown by PyTorch
            self.args.append(keepdim)
