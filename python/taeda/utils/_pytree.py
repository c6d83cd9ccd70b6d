"""Trees of containers: flattening, rebuilding and mapping over the leaves."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

__all__ = [
    "LeafSpec",
    "PyTree",
    "TreeSpec",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]

PyTree = Any
Context = Any


class NodeDef(NamedTuple):
    type: type
    flatten_fn: Callable[[Any], tuple[list, Context]]
    unflatten_fn: Callable[[Iterable, Context], Any]


SUPPORTED_NODES: dict[type, NodeDef] = {}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list, Context]],
    unflatten_fn: Callable[[Iterable, Context], Any],
    **_: Any,
) -> None:
    """Makes ``cls`` a container: flattened to (children, context) and rebuilt from them."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn)


_register_pytree_node = register_pytree_node


def _dict_flatten(d: dict) -> tuple[list, Context]:
    return list(d.values()), list(d.keys())


def _dict_unflatten(values: Iterable, context: Context) -> dict:
    return dict(zip(context, values))


# Stands for all named tuples.
_NAMED_TUPLES: Any = namedtuple

register_pytree_node(dict, _dict_flatten, _dict_unflatten)
register_pytree_node(list, lambda x: (list(x), None), lambda values, _: list(values))
register_pytree_node(tuple, lambda x: (list(x), None), lambda values, _: tuple(values))
register_pytree_node(
    _NAMED_TUPLES,
    lambda x: (list(x), type(x)),
    lambda values, kind: kind(*values),
)
register_pytree_node(
    OrderedDict,
    lambda x: (list(x.values()), list(x.keys())),
    lambda values, keys: OrderedDict(zip(keys, values)),
)
register_pytree_node(
    defaultdict,
    lambda x: (list(x.values()), (x.default_factory, list(x.keys()))),
    lambda values, context: defaultdict(context[0], zip(context[1], values)),
)
register_pytree_node(
    deque, lambda x: (list(x), x.maxlen), lambda values, maxlen: deque(values, maxlen)
)


def _get_node_type(tree: Any) -> Any:
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return namedtuple
    return type(tree)


class TreeSpec:
    """The shape of a tree: the type and context of its root, and the shapes of its children."""

    def __init__(self, type: Any, context: Context, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_children = len(children_specs)
        self.num_leaves: int = sum(child.num_leaves for child in children_specs)

    def is_leaf(self) -> bool:
        return False

    def _key(self) -> tuple:
        return (self.type, self.context, self.children_specs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves))

    def __repr__(self) -> str:
        name = getattr(self.type, "__name__", self.type)
        return f"TreeSpec({name}, {self.context}, {self.children_specs})"

    def unflatten(self, leaves: Iterable) -> Any:
        """The tree with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} "
                f"but the spec refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._unflatten(iter(leaves))

    def _unflatten(self, leaves: Any) -> Any:
        children = [child._unflatten(leaves) for child in self.children_specs]
        return SUPPORTED_NODES[self.type].unflatten_fn(children, self.context)


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])
        self.num_leaves = 1

    def is_leaf(self) -> bool:
        return True

    def _unflatten(self, leaves: Any) -> Any:
        return next(leaves)

    def __repr__(self) -> str:
        return "*"


def tree_flatten(
    tree: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list, TreeSpec]:
    """(the leaves, the shape)"""
    leaves: list = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: PyTree, leaves: list, is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = _get_node_type(tree)
    if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LeafSpec()
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_unflatten(leaves: Iterable, treespec: TreeSpec) -> PyTree:
    """The tree of a shape with these leaves."""
    return treespec.unflatten(leaves)


def tree_leaves(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: PyTree, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The shape."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(
    func: Callable, tree: PyTree, *rests: PyTree, is_leaf: Callable[[Any], bool] | None = None
) -> PyTree:
    """The tree of ``func(leaf, ...)``, over the leaves of one tree or of several alike."""
    leaves, spec = tree_flatten(tree, is_leaf)
    columns = [leaves, *(_flatten_like(spec, rest) for rest in rests)]
    return spec.unflatten(func(*row) for row in zip(*columns))


def _flatten_like(spec: TreeSpec, tree: PyTree) -> list:
    if spec.is_leaf():
        return [tree]
    if _get_node_type(tree) is not spec.type:
        raise ValueError(f"Node type mismatch; expected {spec.type}, but got {type(tree)}.")
    children, context = SUPPORTED_NODES[spec.type].flatten_fn(tree)
    if len(children) != spec.num_children or context != spec.context:
        raise ValueError("Node arity mismatch between the trees.")
    return [
        leaf
        for child_spec, child in zip(spec.children_specs, children)
        for leaf in _flatten_like(child_spec, child)
    ]


def _broadcast_to_and_flatten(tree: PyTree, spec: TreeSpec) -> list | None:
    """One leaf of ``tree`` for each leaf of a shape, where a leaf stands for all below it; None
    where the two do not agree."""
    kind = _get_node_type(tree)
    if kind not in SUPPORTED_NODES:
        return [tree] * spec.num_leaves
    if spec.is_leaf() or kind is not spec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != spec.num_children or context != spec.context:
        return None
    leaves = []
    for child, child_spec in zip(children, spec.children_specs):
        below = _broadcast_to_and_flatten(child, child_spec)
        if below is None:
            return None
        leaves += below
    return leaves


def tree_map_(func: Callable, tree: PyTree, *rests: PyTree) -> PyTree:
    """Calls ``func`` on the leaves for its effect; returns the tree."""
    tree_map(func, tree, *rests)
    return tree


def tree_map_only(
    kind: type | tuple[type, ...] | Callable[[Any], bool], func: Callable, tree: PyTree
) -> PyTree:
    """``tree_map`` over the leaves of one type (or that a predicate picks); the rest stay."""
    if isinstance(kind, (type, tuple)):
        return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree)
    return tree_map(lambda x: func(x) if kind(x) else x, tree)


def tree_all(pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Whether ``pred`` holds for all leaves."""
    return all(map(pred, tree_leaves(tree)))


def tree_any(pred: Callable[[Any], bool], tree: PyTree) -> bool:
    """Whether ``pred`` holds for some leaf."""
    return any(map(pred, tree_leaves(tree)))
