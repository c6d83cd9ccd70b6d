"""Docstrings as Markdown, with links from names to where they are documented."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

Links = Callable[[str], "str | None"]  # a name in a docstring -> a link's target, or None
SPAN = re.compile(r"(`+)((?:(?!\n\n).)+?)\1", re.S)  # in a paragraph
SECTION = re.compile(r"(Args|Shapes?|Returns|Raises|Example|Examples|State|Attributes):\s*$")
ITEM = re.compile(r"(\(?\*{0,2}[\w.]+(?:, \*{0,2}[\w.]+)*\)?): (.*)")


def escape(text: str) -> str:
    """Text that Markdown must not read as markup."""
    return re.sub(r"([\\*_\[\]#|])", r"\\\1", text.replace("&", "&amp;").replace("<", "&lt;"))


def inline(text: str, links: Links) -> str:
    """A paragraph: what stands in backticks is code, and a link where it names something."""
    parts, end = [], 0
    for match in SPAN.finditer(text):
        parts.append(escape(text[end : match.start()]))
        code = match[2].strip()
        target = links(code.removesuffix("()"))
        parts.append(f"[`{code}`]({target})" if target else f"`` {code} ``")
        end = match.end()
    parts.append(escape(text[end:]))
    # A line that would begin a list or a quotation is text.
    return re.sub(r"^(\s*)([-+>]|\d+\.)(?=\s)", r"\1\\\2", "".join(parts), flags=re.M)


def items(lines: list[str], links: Links) -> list[str]:
    """The indented lines of a section: a list where they read `name: text`, else a paragraph."""
    joined: list[str] = []
    for line in lines:  # what is indented further goes on with the item above
        if joined and line.startswith("     "):
            joined[-1] += " " + line.strip()
        else:
            joined.append(line.strip())
    out = []
    for text in joined:
        match = ITEM.fullmatch(text)
        out.append(f"- `{match[1]}`: {inline(match[2], links)}" if match else inline(text, links))
    return [*out, ""]


def code(lines: list[str], language: str) -> list[str]:
    return [f"```{language}", *lines, "```", ""]


def body(doc: str, links: Links) -> str:
    """A docstring without its signatures: paragraphs, sections, examples and formulas."""
    out: list[str] = []
    lines = doc.split("\n")
    at = 0

    def block(belongs: Callable[[str], bool]) -> list[str]:
        nonlocal at
        start = at
        while at < len(lines) and belongs(lines[at]):
            at += 1
        return lines[start:at]

    while at < len(lines):
        line = lines[at]
        if not line.strip():
            at += 1
        elif line.lstrip().startswith(">>>"):
            taken = block(lambda text: bool(text.strip()))
            indent = len(line) - len(line.lstrip())
            out += code([text[indent:] for text in taken], "pycon")
        elif match := SECTION.match(line):
            at += 1
            if match[1].startswith("Example"):
                continue
            out += [f"**{match[1]}**", ""]
            out += items(block(lambda text: text.startswith("    ")), links)
        elif line.startswith("    "):
            taken = block(lambda text: text.startswith("    "))
            out += code([text[4:] for text in taken], "text")
        else:
            taken = block(
                lambda text: (
                    bool(text.strip())
                    and not text.startswith((">>>", "    "))
                    and not SECTION.match(text)
                )
            )
            out += [inline("\n".join(taken), links), ""]
    return "\n".join(out)


def relative(target: str, page: str) -> str:
    """A link from a page of the site to another ("api/nn.md#x"), relative to the former."""
    path, hash_, anchor = target.partition("#")
    if path == page:
        return f"#{anchor}"
    return posixpath.relpath(path, posixpath.dirname(page) or ".") + hash_ + anchor
