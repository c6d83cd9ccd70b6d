"""Pieces of C++ text that every emitter writes."""

from __future__ import annotations

from collections.abc import Iterable

INTERNAL = '[[gnu::visibility("hidden")]]'  # not among the library's dynamic symbols


def block(head: str, *body: str | Iterable[str]) -> list[str]:
    """A function, namespace or statement with braces; of the body, lists of lines count as lines."""
    return [f"{head} {{", *indented(*body), "}"]


def struct(head: str, *body: str | Iterable[str]) -> list[str]:
    return [f"struct {head} {{", *indented(*body), "};"]


def initializer(variable: str, rows: Iterable[str]) -> list[str]:
    return [f"{variable} = {{", *(f"    {row}," for row in rows), "};"]


def several(items: Iterable[str]) -> str:
    """What a function with one or more results returns."""
    one, *more = items
    return "{" + ", ".join([one, *more]) + "}" if more else one


def indented(*parts: str | Iterable[str]) -> list[str]:
    return ["  " + line for part in parts for line in ([part] if isinstance(part, str) else part)]


def enumerator(word: str) -> str:
    """kIntegralBool for integral_bool."""
    return "k" + word.title().replace("_", "")


def quoted(text: str) -> str:
    """A C++ string literal."""
    escaped = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\0": "\\0"})
    return f'"{text.translate(escaped)}"'


def join_lines(*parts: str) -> str:
    return "\n".join(parts) + "\n"
