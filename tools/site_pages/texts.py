"""The hand-written pages: docs and the texts at the root, their links made those of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from .markdown import relative

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def sources() -> dict[str, str]:
    """Path in the repository -> path in the site."""
    found = {}
    for path in sorted((ROOT / "docs").glob("**/*.md")):
        name = path.relative_to(ROOT / "docs").as_posix()
        found[f"docs/{name}"] = name
    for path in sorted(ROOT.glob("*.md")):
        found[path.name] = f"project/{path.stem.lower()}.md"
    found["README.md"] = "index.md"
    return found


def rewritten(text: str, source: str, found: dict[str, str]) -> str:
    """A page's links, from the repository's paths to the site's; what the site lacks is text."""
    page = found[source] if source != "docs/index.md" else "index.md"

    def link(match: re.Match[str]) -> str:
        mark, shown, target = match.groups()
        if re.match(r"\w+:|#", target):
            return match[0]
        path, hash_, anchor = target.partition("#")
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if mark or inside.startswith("docs/images/"):
            where = inside.removeprefix("docs/")
        elif inside in found:
            where = found[inside]
        elif inside.startswith("docs/api/"):  # pages that are generated
            where = inside.removeprefix("docs/")
        else:
            return shown if "`" in shown else f"`{shown}`"
        return f"{mark}[{shown}]({relative(where, page)}{hash_}{anchor})"

    return LINK.sub(link, text)


def pages() -> dict[str, str]:
    found = sources()
    return {
        found[source]: rewritten((ROOT / source).read_text(), source, found)
        for source in found
        if source != "README.md"
    }


def title(text: str) -> str:
    match = re.search(r"^# (.+)$", text, re.M)
    return match[1] if match else "?"
