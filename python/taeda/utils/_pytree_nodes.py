"""The containers that trees are made of, and how others are registered."""

from __future__ import annotations

import threading
import warnings
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, NamedTuple, Protocol

from ._deprecated import deprecated

Context = Any
PyTree = Any
FlattenFn = Callable[[PyTree], tuple[list, Context]]
UnflattenFn = Callable[[Iterable, Context], PyTree]
DumpableContext = Any  # what json writes
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]
FlattenFunc, UnflattenFunc = FlattenFn, UnflattenFn  # old names

NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"


# --- what paths are made of ---


class KeyEntry(Protocol):
    """One step of a path from a root to a leaf."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def __str__(self) -> str: ...
    def get(self, parent: Any) -> Any: ...


KeyPath = tuple[KeyEntry, ...]
FlattenWithKeysFn = Callable[[PyTree], tuple[list[tuple[KeyEntry, Any]], Any]]
FlattenWithKeysFunc = FlattenWithKeysFn


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """An item of a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class MappingKey:
    """A value of a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping) -> Any:
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


# --- the registry ---


class NodeDef(NamedTuple):
    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: FlattenWithKeysFn | None


class _SerializeNodeDef(NamedTuple):
    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()
_NODE_REGISTRY_LOCK = threading.RLock()


def register_pytree_node(
    cls: Any,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Makes ``cls`` a container: flattened to (children, context) and rebuilt from them.

    Args:
        serialized_type_name: what stands for the class where ``treespec_dumps`` writes a shape.
        to_dumpable_context: the context as something that json can write, and
        from_dumpable_context: the reverse; both or none.
        flatten_with_keys_fn: like ``flatten_fn``, with (key, child) pairs for the children; needed
            by the functions that give paths.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _private_register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


@deprecated(
    "`torch.utils._pytree._register_pytree_node` is deprecated. "
    "Please use `torch.utils._pytree.register_pytree_node` instead."
)
def _register_pytree_node(
    cls: Any,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **options: Any,
) -> None:
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. "
            "Please use `to_dumpable_context` and `from_dumpable_context` instead.",
            FutureWarning,
            stacklevel=3,
        )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _private_register_pytree_node(
    cls: Any,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
            "registered."
        )
    name = serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND
    with _NODE_REGISTRY_LOCK:
        if cls in SUPPORTED_NODES:
            warnings.warn(
                f"{cls} is already registered as pytree node. Overwriting the previous "
                "registration.",
                stacklevel=2,
            )
        SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
        SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
            cls, name, to_dumpable_context, from_dumpable_context
        )
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _deregister_pytree_node(cls: Any) -> None:
    with _NODE_REGISTRY_LOCK:
        del SUPPORTED_NODES[cls]
        name = SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name
        del SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
        CONSTANT_NODES.discard(cls)


def register_dataclass(
    cls: Any,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a container of its fields.

    Args:
        field_names: which; those that ``__init__`` takes by default. A class that is no dataclass
            but takes its fields by name needs them given.
        drop_field_names: fields of the dataclass that are left out.
    """
    if is_dataclass(cls):
        known = [f.name for f in fields(cls) if f.init]
        names = known if field_names is None else field_names
        _check_fields(set(known) - set(drop_field_names or ()), names, field_names is not None)
    elif field_names is not None:
        names = field_names
    else:
        raise ValueError(
            "field_names must be specified with a list of all fields used to "
            f"initialize {cls}, as it is not a dataclass."
        )

    def flatten(obj: Any) -> tuple[list, Context]:
        values = {name: getattr(obj, name) for name in names}
        there = {name: value for name, value in values.items() if value is not None}
        return list(there.values()), [list(there), [n for n in names if n not in there]]

    def unflatten(values: Iterable, context: Context) -> Any:
        there, none = context
        return cls(**dict(zip(there, values, strict=True)), **dict.fromkeys(none))

    def flatten_with_keys(obj: Any) -> tuple[list, Context]:
        values, context = flatten(obj)
        return [(GetAttrKey(k), v) for k, v in zip(context[0], values)], context[0]

    _private_register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _check_fields(known: set[str], names: list[str], given: bool) -> None:
    if not given or known == set(names):
        return
    text = "field_names does not include all dataclass fields.\n"
    if missing := known - set(names):
        text += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in "
            "the pytree, please add them to `field_names`, otherwise please add them to "
            "`drop_field_names`.\n"
        )
    if unexpected := set(names) - known:
        text += (
            f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add "
            "them to `drop_field_names`.\n"
        )
    raise ValueError(text)


@dataclass(frozen=True, slots=True)
class ConstantNode:
    """The context of a container without leaves."""

    value: Any


def register_constant(cls: Any) -> None:
    """Makes ``cls``, which must have its own ``__eq__`` and ``__hash__``, a container without
    leaves."""
    for method, default in (("__eq__", object.__eq__), ("__hash__", None)):
        if getattr(cls, method) is default:
            raise TypeError(
                "register_constant(cls) expects `cls` to have a non-default "
                f"`{method}` implementation."
            )

    def flatten(x: Any) -> tuple[list, Context]:
        return [], ConstantNode(x)

    _private_register_pytree_node(
        cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Whether ``register_constant`` was called for it."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


# --- named tuples and C's ---


def is_namedtuple_class(cls: Any) -> bool:
    """Whether it is what ``collections.namedtuple`` makes, or derived from that."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all(type(field) is str for field in cls._fields)  # type: ignore[attr-defined]
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_namedtuple_instance(obj: object) -> bool:
    """Whether it is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


@deprecated(
    "torch.utils._pytree._is_namedtuple_instance is private and will be removed in a future "
    "release. Please use torch.utils._pytree.is_namedtuple_instance instead."
)
def _is_namedtuple_instance(tree: Any) -> bool:
    return is_namedtuple_instance(tree)


_BASETYPE_FLAG = 1 << 10  # of types in C that may be derived from


def is_structseq_class(cls: Any) -> bool:
    """Whether it is a named tuple of C's, such as ``time.struct_time``."""
    counts = ("n_fields", "n_sequence_fields", "n_unnamed_fields")
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, count, None), int) for count in counts)
        and not cls.__flags__ & _BASETYPE_FLAG
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether it is one of C's named tuples."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether it is one of C's named tuples or a class of such."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _get_node_type(tree: Any) -> Any:
    kind = type(tree)
    if kind in SUPPORTED_NODES and kind is not tuple:
        return namedtuple if issubclass(kind, tuple) and is_namedtuple_class(kind) else kind
    return namedtuple if hasattr(kind, "_fields") and is_namedtuple_class(kind) else kind


__all__ = [name for name in globals() if not name.startswith("__")]
