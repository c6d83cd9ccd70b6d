"""A set that keeps the order in which its elements were added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableSet, Set
from typing import Any, TypeVar

T = TypeVar("T")

__all__ = ["OrderedSet"]


class OrderedSet(MutableSet[T]):
    """Has what ``set`` has; iteration goes from the oldest element to the newest.

    >>> from torch.utils._ordered_set import OrderedSet
    >>> OrderedSet("banana") - {"n"}
    OrderedSet(['b', 'a'])
    """

    def __init__(self, iterable: Iterable[T] | None = None) -> None:
        self._elements: dict[T, None] = dict.fromkeys(() if iterable is None else iterable)

    def __contains__(self, elem: object) -> bool:
        return elem in self._elements

    def __iter__(self) -> Iterator[T]:
        return iter(self._elements)

    def __reversed__(self) -> Iterator[T]:
        return reversed(self._elements)

    def __len__(self) -> int:
        return len(self._elements)

    def __repr__(self) -> str:
        return f"OrderedSet({list(self._elements)})"

    def add(self, elem: T) -> None:
        self._elements[elem] = None

    def discard(self, elem: T) -> None:
        self._elements.pop(elem, None)

    def clear(self) -> None:
        self._elements.clear()

    def pop(self) -> T:
        """Removes the newest element; KeyError where there is none."""
        if not self._elements:
            raise KeyError("pop from an empty set")
        return self._elements.popitem()[0]

    def copy(self) -> OrderedSet[T]:
        return OrderedSet(self)

    def update(self, *others: Iterable[T]) -> None:
        for other in others:
            self._elements.update(dict.fromkeys(other))

    def union(self, *others: Iterable[T]) -> OrderedSet[T]:
        found = self.copy()
        found.update(*others)
        return found

    def intersection(self, *others: Iterable[T]) -> OrderedSet[T]:
        sets = [set(other) for other in others]
        return OrderedSet(elem for elem in self if all(elem in other for other in sets))

    def difference(self, *others: Iterable[T]) -> OrderedSet[T]:
        removed = set().union(*others)
        return OrderedSet(elem for elem in self if elem not in removed)

    def symmetric_difference(self, other: Iterable[T]) -> OrderedSet[T]:
        elements = OrderedSet(other)
        return self.difference(elements).union(elements.difference(self))

    def intersection_update(self, *others: Iterable[T]) -> None:
        self._elements = self.intersection(*others)._elements

    def difference_update(self, *others: Iterable[T]) -> None:
        self._elements = self.difference(*others)._elements

    def issubset(self, other: Set[Any]) -> bool:
        return self <= other

    def issuperset(self, other: Set[Any]) -> bool:
        return self >= other
