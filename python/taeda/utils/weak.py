"""Dictionaries by the identity of tensors that they do not keep alive."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref

import taeda

__all__ = [
    "TensorWeakRef",
    "WeakIdKeyDictionary",
    "WeakIdRef",
    "WeakTensorKeyDictionary",
]


class WeakIdRef(weakref.ref):
    """A weak reference that is equal to another where the objects are the same one."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        super().__init__(key, callback)  # type: ignore[call-arg]
        self._id = id(key)

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        mine = self()
        if mine is None or not isinstance(other, weakref.ref):
            return self is other
        return mine is other()


class WeakIdKeyDictionary(MutableMapping):
    """A mapping from objects, by identity, that drops the items of objects that are gone.

    >>> from torch.utils.weak import WeakIdKeyDictionary
    >>> x = torch.ones(2)
    >>> table = WeakIdKeyDictionary({x: "mine"})
    >>> table[x], x.clone() in table
    ('mine', False)
    >>> del x
    >>> len(table)
    0
    """

    def __init__(self, dict: Any = None, ref_type: Any = WeakIdRef) -> None:
        self.data: Any = {}
        self.ref_type = ref_type
        self._owner = weakref.ref(self)
        if dict is not None:
            self.update(dict)

    def _reference(self, key: Any) -> Any:
        owner = self._owner

        def gone(reference: Any) -> None:
            mapping = owner()
            if mapping is not None:
                mapping.data.pop(reference, None)

        return self.ref_type(key, gone)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._reference(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: Any) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator:
        for reference in list(self.data):
            key = reference()
            if key is not None:
                yield key

    def keyrefs(self) -> list:
        """The weak references; some may be of objects that are gone."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        new = type(self)()
        new.update(self)
        return new

    __copy__ = copy

    def __deepcopy__(self, memo: dict) -> WeakIdKeyDictionary:
        from copy import deepcopy

        new = type(self)()
        new.update((key, deepcopy(value, memo)) for key, value in self.items())
        return new

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """A weak reference to a tensor; calling it gives the tensor, or None."""

    ref: weakref.ref

    def __init__(self, tensor: Any) -> None:
        if not isinstance(tensor, taeda.Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = ref(tensor)

    def __call__(self) -> Any:
        return self.ref()
