"""Flattening the arguments of graphs that were traced with containers."""

from __future__ import annotations

from typing import Any

from taeda.utils._pytree import SUPPORTED_NODES, TreeSpec, tree_flatten

__all__ = ["tree_flatten", "tree_flatten_spec"]


def tree_flatten_spec(tree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of `tree`, which is taken apart as `spec` says; ValueError where it differs."""
    if spec.is_leaf():
        return [tree]
    if isinstance(tree, dict):
        parts = [tree[key] for key in spec.context]
    elif isinstance(tree, list | tuple):
        parts = list(tree)
    else:
        parts = SUPPORTED_NODES[spec.type].flatten_fn(tree)[0]
    children = spec.children()
    if len(parts) != len(children):
        raise ValueError(f"expected {len(children)} items, got {len(parts)}: {tree!r}")
    return [leaf for part, child in zip(parts, children) for leaf in tree_flatten_spec(part, child)]
