"""Cuts lists into files so that one more item changes one file.

Whether a piece ends before an item depends on the item's name, not on how many came before it, and
a piece bears the name of its first item: an inserted operator leaves its neighbours' files as they
were, and their objects too.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def cut(
    items: Iterable[T],
    name: Callable[[T], str],
    size: int,
    weight: Callable[[T], int] = lambda item: 1,
) -> dict[str, list[T]]:
    """Consecutive items by the name of the first, at most `size` of weight together."""
    pieces: dict[str, list[T]] = {}
    current: list[T] = []
    total = 0
    for item in items:
        w = weight(item)
        chosen = zlib.crc32(name(item).encode()) * size < 2 * w * 2**32
        if not current or total + w > size or (chosen and total > size // 4):
            current = pieces.setdefault(name(item), [])
            total = 0
        current.append(item)
        total += w
    return pieces
