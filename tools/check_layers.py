"""Checks that includes point one way through the folders of src/.

Each folder may include itself and the ones before it; public headers (include/taeda) include only
public headers; only src/python includes Python.h. Prints each offence as file:line and exits 1.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LAYERS = "base core kernels ops autograd nn optim data io jit dist profile python".split()
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def offence(place: str, path: str, quoted: bool) -> str | None:
    """Why a file in `place` (a folder of src/, or "include") must not include `path`."""
    target = path.split("/")[0]
    if path in ("Python.h", "structmember.h") and place != "python":
        return "only src/python may include Python.h"
    if not quoted or "/" not in path:
        return None
    if place == "include":
        return None if target == "taeda" else "a public header includes only public headers"
    if target in LAYERS and LAYERS.index(target) > LAYERS.index(place):
        return f"src/{place} may not include src/{target}, which stands above it"
    return None


def check(root: Path) -> list[str]:
    found = []
    files = [*root.glob("src/**/*.cc"), *root.glob("src/**/*.h"), *root.glob("include/**/*.h")]
    for file in sorted(files):
        parts = file.relative_to(root).parts
        place = "include" if parts[0] == "include" else parts[1]
        name = "/".join(parts)
        if place != "include" and place not in LAYERS:
            found.append(f"{name}:1: src/{place} is not one of the layers ({', '.join(LAYERS)})")
            continue
        for number, line in enumerate(file.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if match and (why := offence(place, match[2], match[1] == '"')):
                found.append(f"{name}:{number}: {why}")
    return found


if __name__ == "__main__":
    offences = check(ROOT)
    print("\n".join(offences) or "includes point one way")
    sys.exit(bool(offences))
