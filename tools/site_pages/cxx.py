"""The C++ pages: each public header as a text, comments as prose and declarations as code."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

from .markdown import inline

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = re.compile(r"\s*(#|namespace\b|\}  // namespace|public:|private:|// clang-format)")
ORDER = ["taeda", "tensor", "nn", "optim", "data", "autograd", "indexing", "dtype", "serialize"]


def headers() -> list[Path]:
    """The public headers, those that a program begins with first."""
    found = sorted((ROOT / "include" / "taeda").glob("*.h"))
    rank = {name: i for i, name in enumerate(ORDER)}
    return sorted(found, key=lambda path: (rank.get(path.stem, len(rank)), path.stem))


def blocks(text: str) -> list[tuple[str, list[str]]]:
    """("comment" | "code", lines) in their order; blank lines and guards separate and are gone."""
    found: list[tuple[str, list[str]]] = []
    last, depth = "", 0
    for line in text.split("\n"):
        if re.match(r"\s*//", line) and not re.match(r"\s*// namespace", line):
            kind, line = "comment", re.sub(r"^\s*// ?", "", line)
        elif not line.strip() or LEFT_OUT.match(line):
            last = ""
            continue
        else:
            kind = "code"
            depth += line.count("{") - line.count("}")
            if depth < 0:  # the end of a namespace
                depth = 0
                continue
        if kind != last:
            found.append((kind, []))
        found[-1][1].append(line)
        last = kind
    return found


def prose(lines: list[str]) -> str:
    """A comment as Markdown: what is indented by two more is an example."""
    out: list[str] = []
    example = False

    def of_example(line: str) -> bool:
        nonlocal example
        example = line.startswith("  ") or (example and not line.strip())
        return example

    for is_example, group in groupby(lines, key=of_example):
        text = "\n".join(line.rstrip() for line in group).rstrip("\n")
        if is_example:
            out += ["```cpp", *(line[2:] for line in text.split("\n")), "```"]
        else:
            out.append(plain(text))
        out.append("")
    return "\n".join(out[:-1])


def plain(text: str) -> str:
    """Text in which nothing but backticks is markup."""
    return inline(text, lambda name: None)


def dedent(lines: list[str]) -> list[str]:
    least = min(len(line) - len(line.lstrip()) for line in lines)
    return [line[least:] for line in lines]


def heading(code: list[str]) -> str | None:
    """A class or struct that begins here."""
    match = re.match(
        r"\s*(?:template <[^>]*>\s*)?(?:class|struct)\s+(?:TD_\w+\s+)?(\w+)[^;]*$", code[0]
    )
    return match[1] if match else None


def page(header: Path) -> str:
    out = [f"# taeda/{header.name}", ""]
    waiting: str | None = None
    for kind, lines in blocks(header.read_text()):
        if kind == "comment":
            if waiting is not None:
                out += [waiting, ""]
            waiting = prose(lines)
            continue
        if name := heading(lines):
            out += [f"## {name}", ""]
        if waiting is not None:
            out += [waiting, ""]
            waiting = None
        out += ["```cpp", *dedent(lines), "```", ""]
    if waiting is not None:
        out += [waiting, ""]
    return "\n".join(out)


def summary(header: Path) -> str:
    """The first sentence of a header's opening paragraph."""
    first = next((lines for kind, lines in blocks(header.read_text()) if kind == "comment"), [])
    text = " ".join(line.strip() for line in first if not line.startswith("  "))
    return re.split(r"(?<=[.:])\s", text, maxsplit=1)[0].rstrip(":")


def pages() -> dict[str, str]:
    found = {f"cpp/{path.stem}.md": page(path) for path in headers()}
    index = [
        "# C++ headers",
        "",
        "The comments of `include/taeda`, whose examples run as tests. The",
        "[tutorial](../tutorials/cpp.md) builds a program with them.",
        "",
        "| | |",
        "|---|---|",
    ]
    for path in headers():
        index.append(f"| [taeda/{path.name}]({path.stem}.md) | {plain(summary(path))} |")
    return {"cpp/index.md": "\n".join(index) + "\n"} | found
