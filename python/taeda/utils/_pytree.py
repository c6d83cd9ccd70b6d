"""Trees of containers: flattening, rebuilding, mapping over the leaves.

>>> from taeda.utils import _pytree as pytree
>>> leaves, spec = pytree.tree_flatten({"x": 1, "y": (2, 3)})
>>> leaves
[1, 2, 3]
>>> pytree.tree_unflatten([10, 20, 30], spec)
{'x': 10, 'y': (20, 30)}
"""

from __future__ import annotations

import functools
import types
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ._deprecated import deprecated
from ._pytree_builtin import *  # noqa: F403
from ._pytree_builtin import BUILTIN_TYPES, STANDARD_DICT_TYPES
from ._pytree_json import *  # noqa: F403
from ._pytree_json import treespec_dumps, treespec_loads
from ._pytree_nodes import *  # noqa: F403
from ._pytree_nodes import (
    SUPPORTED_NODES,
    ConstantNode,
    Context,
    DumpableContext,
    FlattenFn,
    FromDumpableContextFn,
    KeyPath,
    PyTree,
    ToDumpableContextFn,
    UnflattenFn,
    _get_node_type,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    register_pytree_node,
)

__all__ = [
    "Context",
    "DumpableContext",
    "FlattenFn",
    "FromDumpableContextFn",
    "LeafSpec",
    "PyTree",
    "PyTreeSpec",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

_IsLeaf = Callable[[Any], bool] | None


# --- the shape of a tree ---


class TreeSpec:
    """The shape of a tree: the type and context of its root, and the shapes of its children."""

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")
    type: Any
    _context: Context
    _children: list[TreeSpec]
    num_children: int
    num_leaves: int
    num_nodes: int

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        leaf = type is None
        set_field = functools.partial(object.__setattr__, self)
        set_field("type", type)
        set_field("_context", context)
        set_field("_children", children_specs)
        set_field("num_children", len(children_specs))
        set_field("num_nodes", 1 + sum([child.num_nodes for child in children_specs]))
        set_field("num_leaves", int(leaf) + sum([child.num_leaves for child in children_specs]))

    def __setattr__(self, name: str, value: Any) -> None:
        from dataclasses import FrozenInstanceError

        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __reduce__(self) -> tuple:
        return TreeSpec, (self.type, self._context, self._children)

    @property
    def context(self) -> Context:
        return self._context

    @property
    @deprecated(
        "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a single "
        "child, or `treespec.children()` to get all children."
    )
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def is_leaf(self) -> bool:
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The shapes of the root's children."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The shape of one of the root's children."""
        return self._children[index]

    def __eq__(self, other: Any) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        same_type = self.type is other.type or str(self.type) == str(other.type)
        return same_type and self._context == other._context and self._children == other._children

    def __hash__(self) -> int:
        context = self._context
        if self.type is defaultdict:
            context = (context[0], tuple(context[1]))
        elif self.type in STANDARD_DICT_TYPES:
            context = tuple(context)
        elif isinstance(context, ConstantNode):
            context = context.value
        elif self.type is not None and self.type not in BUILTIN_TYPES:
            context = None  # perhaps not hashable
        return hash((self.type, context, tuple(self._children)))

    def __repr__(self, indent: int = 0) -> str:
        if self.type is None:
            return "*"
        indent += 2
        children = f",\n{' ' * indent}".join(c.__repr__(indent) for c in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"

    def unflatten(self, leaves: Iterable) -> Any:
        """The tree with these leaves; ValueError where their number differs."""
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} "
                f"but the spec refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._unflatten(iter(leaves))

    def _unflatten(self, leaves: Iterator) -> Any:
        if self.type is None:
            return next(leaves)
        children = [child._unflatten(leaves) for child in self._children]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self._context)

    def flatten_up_to(self, tree: PyTree) -> list[PyTree]:
        """The subtrees of a tree that stand where this shape has its leaves.

        ValueError where the tree has another type, number of children or keys on the way. The kinds
        of dictionaries stand for one another.
        """
        subtrees: list = []
        self._flatten_up_to(tree, subtrees)
        return subtrees

    def _flatten_up_to(self, tree: PyTree, subtrees: list) -> None:
        if self.type is None:
            subtrees.append(tree)
            return
        for child, part in zip(self._children, self._children_of(tree), strict=True):
            child._flatten_up_to(part, subtrees)

    def _children_of(self, tree: PyTree) -> Any:
        kind = _get_node_type(tree)
        dicts = kind in STANDARD_DICT_TYPES and self.type in STANDARD_DICT_TYPES
        if kind != self.type and not dicts:
            what = "Node type" if self.type in BUILTIN_TYPES else "Type"
            raise ValueError(f"{what} mismatch; expected {self.type!r}, but got {kind!r}.")
        parts, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(parts) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(parts)}."
            )
        if dicts:
            return self._values_of(tree)
        if kind is not deque and context != self._context:
            raise ValueError(self._context_mismatch(context))
        return parts

    def _values_of(self, tree: Mapping) -> list:
        keys = self._context[1] if self.type is defaultdict else self._context
        missing, extra = set(keys) - set(tree), set(tree) - set(keys)
        if missing or extra:
            text = f"; missing key(s): {missing}" if missing else ""
            text += f"; extra key(s): {extra}" if extra else ""
            raise ValueError(f"Node keys mismatch{text}.")
        return [tree[key] for key in keys]

    def _context_mismatch(self, context: Context) -> str:
        if self.type not in BUILTIN_TYPES:
            return f"Node context mismatch for custom node type {self.type!r}."
        return (
            f"Node context mismatch for node type {self.type!r}; "
            f"expected {self._context!r}, but got {context!r}."
        )


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The shape of a leaf; new code asks ``spec.is_leaf()``."""

    __slots__ = ()

    @deprecated(
        "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) and "
        "treespec.is_leaf()` instead."
    )
    def __init__(self) -> None:
        super().__init__(None, None, [])

    def __reduce__(self) -> Any:
        return treespec_leaf, ()


_LEAF_SPEC: TreeSpec = LeafSpec.__new__(LeafSpec)
TreeSpec.__init__(_LEAF_SPEC, None, None, [])


def treespec_leaf() -> TreeSpec:
    """The shape of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The shape of a tuple whose items have these shapes."""
    children = list(iterable)
    if any(not isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping: Any = (), /, **kwargs: TreeSpec) -> TreeSpec:
    """The shape of a dict whose values have these shapes."""
    children = dict(mapping, **kwargs)
    if any(not isinstance(child, TreeSpec) for child in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))


def treespec_pprint(treespec: TreeSpec) -> str:
    """The shape as its tree is written, with ``*`` for leaves."""
    return repr(treespec.unflatten([_LEAF_SPEC] * treespec.num_leaves))


# --- flattening and rebuilding ---


def tree_is_leaf(tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether a tree is a leaf: no container that is known, or ``is_leaf`` says so."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return _get_node_type(tree) not in SUPPORTED_NODES


def tree_flatten(tree: PyTree, is_leaf: _IsLeaf = None) -> tuple[list, TreeSpec]:
    """(the leaves, the shape)"""
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list, is_leaf: _IsLeaf) -> TreeSpec:
    kind = _get_node_type(tree)
    node = SUPPORTED_NODES.get(kind)
    if (is_leaf is not None and is_leaf(tree)) or node is None:
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def _check_spec(treespec: Any) -> None:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of a shape with these leaves."""
    _check_spec(treespec)
    return treespec.unflatten(leaves)


def tree_iter(tree: PyTree, is_leaf: _IsLeaf = None) -> Iterator:
    """The leaves, one after the other."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: _IsLeaf = None) -> list:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list:
    """The leaves of a call's arguments."""
    return tree_leaves([*args, *kwargs.values()])


def tree_structure(tree: PyTree, is_leaf: _IsLeaf = None) -> TreeSpec:
    """The shape."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None) -> PyTree:
    """The tree of ``func(leaf, ...)``; ``tree`` must be a prefix of the other trees.

    >>> from taeda.utils._pytree import tree_map
    >>> tree_map(lambda x, y: [x] + y, [5, 6], [[7, 9], [1, 2]])
    [[5, 7, 9], [6, 1, 2]]
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]))


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None) -> PyTree:
    """Calls ``func`` on the leaves for its effect; returns the tree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *[spec.flatten_up_to(rest) for rest in rests]), maxlen=0)
    return tree


def _predicate(kind: Any) -> Callable[[Any], bool]:
    if isinstance(kind, (type, tuple, types.UnionType)):
        return lambda x: isinstance(x, kind)
    if callable(kind):
        return kind
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable], Callable]:
    """A decorator: the function on what is of these types (or what a predicate picks), the
    identity on the rest."""
    chosen = _predicate(type_or_types_or_pred)

    def decorate(func: Callable) -> Callable:
        @functools.wraps(func)
        def mapped(x: Any) -> Any:
            return func(x) if chosen(x) else x

        return mapped

    return decorate


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: _IsLeaf = None
) -> PyTree:
    """``tree_map`` over the leaves of these types (or that a predicate picks); the rest stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable, tree: PyTree, is_leaf: _IsLeaf = None
) -> PyTree:
    """``tree_map_`` over the leaves of these types (or that a predicate picks)."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether ``pred`` holds for all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None) -> bool:
    """Whether ``pred`` holds for some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None
) -> bool:
    """Whether ``pred`` holds for all leaves of these types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: PyTree, is_leaf: _IsLeaf = None
) -> bool:
    """Whether ``pred`` holds for some leaf of these types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: _IsLeaf = None
) -> list | None:
    """One leaf of ``tree`` for each leaf of a shape, where a leaf stands for all below it; None
    where the two do not agree."""
    leaves, spec = tree_flatten(tree, is_leaf)
    full = treespec.unflatten([0] * treespec.num_leaves)
    try:
        subtrees = spec.flatten_up_to(full)
    except ValueError:
        return None
    counts = [tree_structure(subtree, is_leaf).num_leaves for subtree in subtrees]
    return [leaf for leaf, count in zip(leaves, counts) for _ in range(count)]


def tree_flatten_with_path(
    tree: PyTree, is_leaf: _IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """(pairs of the path to a leaf and the leaf, the shape)"""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: _IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """Pairs of the path to a leaf and the leaf.

    >>> from taeda.utils._pytree import keystr, tree_leaves_with_path
    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_generate_key_paths((), tree, is_leaf))


def _generate_key_paths(
    key_path: KeyPath, tree: PyTree, is_leaf: _IsLeaf = None
) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield key_path, tree
        return
    kind = _get_node_type(tree)
    flatten = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if flatten is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in flatten(tree)[0]:
        yield from _generate_key_paths((*key_path, key), child, is_leaf)


def tree_map_with_path(
    func: Callable, tree: PyTree, *rests: PyTree, is_leaf: _IsLeaf = None
) -> PyTree:
    """The tree of ``func(path, leaf, ...)``."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    columns = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*pair, *row) for pair, *row in zip(pairs, *columns, strict=True)])


def keystr(kp: KeyPath) -> str:
    """A path as it is written in a program."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What a path leads to."""
    return functools.reduce(lambda at, key: key.get(at), kp, obj)
