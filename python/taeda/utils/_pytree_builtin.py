"""Python's own containers as nodes of trees."""

from __future__ import annotations

import importlib
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Iterable
from typing import Any

from taeda import Size, return_types

from ._pytree_nodes import (
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    Context,
    DumpableContext,
    FlattenFn,
    FlattenWithKeysFn,
    GetAttrKey,
    MappingKey,
    SequenceKey,
    _private_register_pytree_node,
)


def _tuple_flatten(d: tuple) -> tuple[list, Context]:
    return list(d), None


def _tuple_unflatten(values: Iterable, context: Context) -> tuple:
    return tuple(values)


def _list_flatten(d: list) -> tuple[list, Context]:
    return d, None


def _list_unflatten(values: Iterable, context: Context) -> list:
    return list(values)


def _dict_flatten(d: dict) -> tuple[list, Context]:
    return list(d.values()), list(d)


def _dict_unflatten(values: Iterable, context: Context) -> dict:
    return dict(zip(context, values, strict=True))


def _namedtuple_flatten(d: Any) -> tuple[list, Context]:
    return list(d), type(d)


def _namedtuple_unflatten(values: Iterable, context: Context) -> Any:
    return context(*values)


def _ordereddict_unflatten(values: Iterable, context: Context) -> OrderedDict:
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d: defaultdict) -> tuple[list, Context]:
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_unflatten(values: Iterable, context: Context) -> defaultdict:
    return defaultdict(context[0], _dict_unflatten(values, context[1]))


def _deque_flatten(d: deque) -> tuple[list, Context]:
    return list(d), d.maxlen


def _deque_unflatten(values: Iterable, context: Context) -> deque:
    return deque(values, maxlen=context)


_ordereddict_flatten = _odict_flatten = _dict_flatten
_odict_unflatten = _ordereddict_unflatten


def _with_indices(flatten: FlattenFn) -> FlattenWithKeysFn:
    def flatten_with_keys(d: Any) -> tuple[list, Context]:
        values, context = flatten(d)
        return [(SequenceKey(i), value) for i, value in enumerate(values)], context

    return flatten_with_keys


def _with_keys(flatten: FlattenFn) -> FlattenWithKeysFn:
    def flatten_with_keys(d: Any) -> tuple[list, Context]:
        values, context = flatten(d)
        return [(MappingKey(key), value) for key, value in zip(d, values)], context

    return flatten_with_keys


def _namedtuple_flatten_with_keys(d: Any) -> tuple[list, Context]:
    return [(GetAttrKey(name), value) for name, value in zip(d._fields, d)], type(d)


_tuple_flatten_with_keys = _with_indices(_tuple_flatten)
_list_flatten_with_keys = _with_indices(_list_flatten)
_deque_flatten_with_keys = _with_indices(_deque_flatten)
_dict_flatten_with_keys = _with_keys(_dict_flatten)
_ordereddict_flatten_with_keys = _dict_flatten_with_keys
_defaultdict_flatten_with_keys = _with_keys(_defaultdict_flatten)


def _namedtuple_serialize(context: Context) -> DumpableContext:
    node = SUPPORTED_SERIALIZED_TYPES.get(context)
    if node is None or node.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we didn't register a "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return node.serialized_type_name


def _namedtuple_deserialize(dumpable_context: DumpableContext) -> Context:
    if dumpable_context not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {dumpable_context} "
            "because we couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[dumpable_context]


_FACTORY = ("default_factory_module", "default_factory_name")


def _defaultdict_serialize(context: Context) -> DumpableContext:
    factory, keys = context
    names = (factory.__module__, factory.__qualname__)
    return {**dict(zip(_FACTORY, names)), "dict_context": keys}


def _defaultdict_deserialize(dumpable_context: DumpableContext) -> Context:
    module, name = (dumpable_context[key] for key in _FACTORY)
    return [getattr(importlib.import_module(module), name), dumpable_context["dict_context"]]


def _register_namedtuple(cls: Any, *, serialized_type_name: str) -> None:
    """Lets ``treespec_dumps`` write shapes with this class of named tuples."""
    _private_register_pytree_node(
        cls,
        _namedtuple_flatten,
        _namedtuple_unflatten,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=_namedtuple_serialize,
        from_dumpable_context=_namedtuple_deserialize,
        flatten_with_keys_fn=_namedtuple_flatten_with_keys,
    )


def _register_builtin(name: str, cls: Any, *functions: Any) -> None:
    flatten, unflatten, flatten_with_keys, *dump_and_load = functions
    to_dumpable, from_dumpable = dump_and_load or (None, None)
    _private_register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=name,
        to_dumpable_context=to_dumpable,
        from_dumpable_context=from_dumpable,
        flatten_with_keys_fn=flatten_with_keys,
    )


_register_builtin(
    "builtins.tuple", tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys
)
_register_builtin("builtins.list", list, _list_flatten, _list_unflatten, _list_flatten_with_keys)
_register_builtin("builtins.dict", dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys)
_register_builtin(  # stands for all named tuples
    "collections.namedtuple",
    namedtuple,
    _namedtuple_flatten,
    _namedtuple_unflatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_serialize,
    _namedtuple_deserialize,
)
_register_builtin(
    "collections.OrderedDict",
    OrderedDict,
    _ordereddict_flatten,
    _ordereddict_unflatten,
    _ordereddict_flatten_with_keys,
)
_register_builtin(
    "collections.defaultdict",
    defaultdict,
    _defaultdict_flatten,
    _defaultdict_unflatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_serialize,
    _defaultdict_deserialize,
)
_register_builtin(
    "collections.deque", deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys
)

STANDARD_DICT_TYPES: frozenset = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES: frozenset = frozenset(SUPPORTED_NODES)


def _register_result(cls: Any) -> None:
    """A size, or a result whose parts have names, which has none in files, as in PyTorch."""
    unflatten = tuple if cls is Size else cls
    _private_register_pytree_node(
        cls,
        _tuple_flatten,
        lambda values, context: unflatten(values),
        serialized_type_name="torch.Size" if cls is Size else None,
        flatten_with_keys_fn=_tuple_flatten_with_keys,
    )


for _type in (Size, *return_types.all_return_types):
    _register_result(_type)

__all__ = [name for name in globals() if not name.startswith("__")]
