"""The text that an index shows of the package: the README without paths of the repository.

scikit-build-core asks `dynamic_metadata` when it writes the metadata (pyproject.toml names this
file). Pictures and links with paths of the repository become their words; addresses stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[2] / "README.md"
PICTURE = re.compile(r"!\[[^\]]*\]\((?!\w+:)[^)]*\)\n(?:\n\*[^\n]*\*\n)?\n?")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)\s]*)\)")


def text(readme: str) -> str:
    """A README whose links lead somewhere from anywhere; the words under a picture go with it."""
    return LINK.sub(lambda match: match[1], PICTURE.sub("", readme))


def dynamic_metadata(field: str, settings: Mapping[str, Any]) -> dict[str, str]:
    """What scikit-build-core puts in for `readme`; RuntimeError for other fields and settings."""
    if field != "readme" or settings:
        raise RuntimeError(f"description.py makes readme without settings, not {field!r}")
    return {"content-type": "text/markdown", "text": text(README.read_text(encoding="utf-8"))}
