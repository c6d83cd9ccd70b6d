"""What formulas read of a tensor: its values, or only metadata that a backward node keeps instead."""

from __future__ import annotations

import ast
from collections.abc import Iterator

# C++ type of what is kept, and the type in expressions.
METADATA = {
    "sizes": ("DimVector", "N"),
    "dtype": ("DType", "D"),
    "dim": ("int64_t", "I"),
    "numel": ("int64_t", "I"),
    "strides": ("DimVector", "N"),
    "storage_offset": ("int64_t", "I"),
    "device": ("Device", "V"),
    "is_complex": ("bool", "B"),
    "layouts": ("TensorList", "L"),  # of a list: tensors without memory
}


def names_used(text: str) -> set[str]:
    """Every plain name in an expression or body."""
    return {node.id for node in _names(ast.parse(text))}


def _names(tree: ast.AST) -> Iterator[ast.Name]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Name))


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


class _Rewriter(ast.NodeTransformer):
    def __init__(self, kept: dict[str, set[str]]):
        self.kept = kept

    def visit_Call(self, node: ast.Call) -> ast.AST:
        read = _read_metadata(node)
        if read and read[1] in self.kept.get(read[0].id, ()):
            return ast.Name(f"{read[0].id}__{read[1]}", ast.Load())
        return self.generic_visit(node)


def from_metadata(text: str, kept: dict[str, set[str]]) -> str:
    """`text` with the kept value ``x__sizes`` for ``x.sizes()`` where x itself is not kept."""
    return ast.unparse(_Rewriter(kept).visit(ast.parse(text.strip())))
