"""The lists and dictionaries in nodes' arguments, which cannot be changed in place."""

from __future__ import annotations

from typing import Any, NoReturn

from taeda.utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _no_mutation(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__!r} object does not support mutation. To change the args or kwargs "
        "of a torch.fx.Node, copy them, change the copy and assign it: node.args = new_args"
    )


class immutable_list(list):
    """A list of arguments; TypeError when it would change."""

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _no_mutation
    append = clear = extend = insert = pop = remove = reverse = sort = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dictionary of arguments; TypeError when it would change."""

    __delitem__ = __ior__ = __setitem__ = _no_mutation  # type: ignore[assignment]
    clear = pop = popitem = setdefault = update = _no_mutation  # type: ignore[assignment]

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return type(self), (tuple(self.items()),)


def _with_keys(kind: type) -> Any:
    return _pytree.SUPPORTED_NODES[kind].flatten_with_keys_fn


def _unflatten(kind: type, base: type) -> Any:
    return lambda values, context: kind(_pytree.SUPPORTED_NODES[base].unflatten_fn(values, context))


for _kind, _base in ((immutable_list, list), (immutable_dict, dict)):
    _node = _pytree.SUPPORTED_NODES[_base]
    _pytree.register_pytree_node(
        _kind,
        _node.flatten_fn,
        _unflatten(_kind, _base),
        serialized_type_name=f"torch.fx.immutable_collections.{_kind.__name__}",
        flatten_with_keys_fn=_with_keys(_base),
    )
