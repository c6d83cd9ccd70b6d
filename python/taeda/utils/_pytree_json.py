"""Shapes of trees as text."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, dataclass
from enum import Enum
from functools import lru_cache, reduce
from typing import Any

from . import _pytree_nodes as nodes
from ._deprecated import deprecated

__all__ = [
    "DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL",
    "EnumEncoder",
    "_TreeSpecSchema",
    "enum_object_hook",
    "pytree_to_str",
    "str_to_pytree",
    "treespec_dumps",
    "treespec_loads",
]

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations by the name of their class and their own."""

    def default(self, obj: object) -> Any:
        if not isinstance(obj, Enum):
            return super().default(obj)
        cls = type(obj)
        return {
            "__enum__": True,
            "fqn": f"{cls.__module__}:{cls.__qualname__}",
            "name": obj.name,
        }


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """The reverse, for ``json.loads``."""
    if "__enum__" not in obj:
        return obj
    module, _, path = obj["fqn"].partition(":")
    cls: Any = reduce(getattr, path.split("."), importlib.import_module(module))
    return cls[obj["name"]]


@dataclass
class _TreeSpecSchema:
    type: str | None  # None for a leaf
    context: Any
    children_spec: list[_TreeSpecSchema]


def _to_schema(spec: Any) -> _TreeSpecSchema:
    if spec.is_leaf():
        return _TreeSpecSchema(None, None, [])
    node = nodes.SUPPORTED_SERIALIZED_TYPES.get(spec.type)
    if node is None:
        raise NotImplementedError(f"Serializing {spec.type} in pytree is not registered.")
    if node.serialized_type_name == nodes.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if node.to_dumpable_context is not None:
        context = node.to_dumpable_context(spec.context)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register "
                "a custom serializer using _register_pytree_node."
            ) from error
    children = [_to_schema(child) for child in spec.children()]
    return _TreeSpecSchema(node.serialized_type_name, context, children)


def _from_schema(schema: dict) -> Any:
    from ._pytree import TreeSpec, treespec_leaf

    name, context, children = schema["type"], schema["context"], schema["children_spec"]
    if name is None and context is None and not children:
        return treespec_leaf()
    if name not in nodes.SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    kind = nodes.SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    load = nodes.SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context
    if load is not None:
        context = load(context)
    else:
        context = json.loads(context, object_hook=enum_object_hook)
    return TreeSpec(kind, context, [_from_schema(child) for child in children])


def _check_protocol(protocol: Any) -> None:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        known = [DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {known}")


def treespec_dumps(treespec: Any, protocol: int | None = None) -> str:
    """A shape as JSON. NotImplementedError where a container has no name to be written by."""
    from ._pytree import _check_spec

    _check_spec(treespec)
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _check_protocol(protocol)
    return json.dumps((protocol, asdict(_to_schema(treespec))), cls=EnumEncoder)


@lru_cache
def treespec_loads(serialized: str) -> Any:
    """The shape that ``treespec_dumps`` wrote."""
    protocol, schema = json.loads(serialized)
    _check_protocol(protocol)
    return _from_schema(schema)


@deprecated("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.")
def pytree_to_str(treespec: Any) -> str:
    return treespec_dumps(treespec)


@deprecated("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.")
def str_to_pytree(json: str) -> Any:
    return treespec_loads(json)
