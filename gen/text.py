"""Parts of C++ text that every emitter writes, and how lists are cut into files."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
INTERNAL = '[[gnu::visibility("hidden")]]'  # not among the library's dynamic symbols


def block(head: str, *body: str | Iterable[str]) -> list[str]:
    """A function, namespace or statement with braces; of the body, lists of lines count as lines."""
    return [f"{head} {{" if head else "{", *indented(*body), "}"]


def initializer(variable: str, rows: Iterable[str]) -> list[str]:
    return [f"{variable} = {{", *(f"    {row}," for row in rows), "};"]


def several(items: Iterable[str]) -> str:
    """What a function with one or more results returns."""
    one, *more = items
    return "{" + ", ".join([one, *more]) + "}" if more else one


def indented(*parts: str | Iterable[str]) -> list[str]:
    return ["  " + line for part in parts for line in ([part] if isinstance(part, str) else part)]


def macro(name: str, rows: Iterable[str]) -> str:
    """The definition of a macro that gives each row to X."""
    return " \\\n  ".join([f"#define {name}(X)", *rows])


def enumerator(word: str) -> str:
    """kIntegralBool for integral_bool."""
    return "k" + word.title().replace("_", "")


def quoted(text: str) -> str:
    """A C++ string literal."""
    return json.dumps(text, ensure_ascii=False)


def join_lines(*parts: str) -> str:
    return "\n".join(parts) + "\n"


def cut(
    items: Iterable[T],
    name: Callable[[T], str],
    size: int,
    weight: Callable[[T], int] = lambda item: 1,
) -> dict[str, list[T]]:
    """Consecutive items by the name of the first, at most `size` of weight together.

    What is too heavy parts in its middle half, before the item whose name has the least checksum:
    an inserted operator leaves its neighbours' files as they were, and their objects too.
    """
    run = [*items]
    if len(run) < 2 or sum(map(weight, run)) <= size:
        return {name(run[0]): run} if run else {}
    middle = range((len(run) + 3) // 4, max(len(run) * 3 // 4, 1) + 1)
    at = min(middle, key=lambda i: zlib.crc32(name(run[i]).encode()))
    return cut(run[:at], name, size, weight) | cut(run[at:], name, size, weight)
