"""C++ source text as the checks of tools/ read it: without comments, lines whole, numbers kept."""

from __future__ import annotations

import re

# A literal, which is kept, or a comment.
TOKEN = re.compile(
    r'(?P<literal>R"(?P<tag>[^()\\\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\')'
    r"|//(?:\\\n|[^\n])*|/\*.*?\*/",
    re.S,
)


def without_comments(text: str) -> str:
    """`text` with a space for each comment and each continued line, and as many line ends."""

    def kept(match: re.Match[str]) -> str:
        return match[0] if match["literal"] else " " + "\n" * match[0].count("\n")

    # A continued line is one line; the ends that it loses follow it.
    joined, owed = [], 0
    for line in TOKEN.sub(kept, text).split("\n"):
        if line.endswith("\\"):
            joined.append(line[:-1] + " ")
            owed += 1
        else:
            joined.append(line + "\n" * (owed + 1))
            owed = 0
    return "".join(joined).removesuffix("\n")
