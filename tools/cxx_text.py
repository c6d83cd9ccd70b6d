"""C++ source text as the checks of tools/ read it: without comments, lines whole, numbers kept."""

from __future__ import annotations

import re

# A literal, which is kept, or a comment.
TOKEN = re.compile(
    r'(?P<literal>R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')'
    r"|//[^\n]*|/\*.*?\*/",
    re.S,
)


# A line that goes on behind a backslash.
CONTINUED = re.compile(r"(?:[^\n]*\\[ \t]*\n)+[^\n]*")


def without_comments(text: str) -> str:
    """`text` with a space for each comment and continued lines joined, and as many line ends."""

    def joined(match: re.Match[str]) -> str:
        # First of all, as compilers do: a word or the start of a comment may be parted. The line
        # ends that are lost follow the line.
        return re.sub(r"\\[ \t]*\n", "", match[0]) + "\n" * match[0].count("\n")

    def kept(match: re.Match[str]) -> str:
        return match[0] if match["literal"] else " " + "\n" * match[0].count("\n")

    return TOKEN.sub(kept, CONTINUED.sub(joined, text))
