"""Checks that includes point one way through the folders of src/ (the table is in layers.py).

An include is judged by the file it resolves to, whichever way it is written: quotes or angle
brackets, "../ops/launch.h" or "launch.h" from a neighbour; one that a macro names is refused. A
public header counts to its layer; generated headers (op/NAME.h and their like) to ops. What is
included is a header of src/ or include/ or a generated one: no file of another kind, nor one that a
path leads to elsewhere. Prints each offence as file:line and exits 1.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path

from cxx_text import without_comments
from layers import ALLOWED, ORDER, PUBLIC_HEADERS, UMBRELLA, may_use

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*(?:#|%:)\s*(?:include(?:_next)?|import)\b\s*(?:[<"]([^>"]+)[>"])?')
PYTHON_HEADERS = Path(sysconfig.get_path("include"))
# What may be included, and whose own includes are read for that.
HEADERS = {".h", ".hpp", ".cuh", ".inc"}
SOURCES = {*HEADERS, ".cc", ".cu"}
# The methods of Tensor, generated, which one public header takes in.
METHODS = "taeda/tensor_methods.inc"
# Includes the functors' header, of its own layer, that a generated file names (gen/pointwise.py).
LOOPS = "src/kernels/cpu/pointwise/loops-inl.h"
# Folders of generated headers: op/add.h.
GENERATED = {"op": "ops"}


def layer_of(file: Path, root: Path) -> str | None:
    """The layer that a file of the repository belongs to; None outside src/ and include/taeda/."""
    if not file.is_relative_to(root):
        return None
    parts = file.relative_to(root).parts
    if parts[0] == "src" and len(parts) > 2:
        return parts[1]
    if parts[:2] == ("include", "taeda"):
        return PUBLIC_HEADERS.get(file.stem, "ops")
    return None


def target(path: str, file: Path, root: Path) -> tuple[str, bool] | None:
    """(layer of what `path` means in `file`, whether it is a public header); None for others'."""
    for folder in (file.parent, root / "src", root / "include"):
        found = (folder / path).resolve()
        if found.is_file() and (layer := layer_of(found, root)):
            return layer, found.is_relative_to(root / "include")
    first = path.split("/")[0]
    if first == "taeda":  # a generated public header
        return PUBLIC_HEADERS.get(Path(path).stem, "ops"), True
    if layer := GENERATED.get(first, first if first in ALLOWED else None):
        return layer, False
    return None


def _led_elsewhere(path: str, file: Path, root: Path) -> str | None:
    """Why a path is none of a header's, wherever it leads."""
    known = [folder for folder in (file.parent, root / "src", root / "include")]
    found = [f for folder in known if (f := (folder / path).resolve()).is_file()]
    # Device text takes in what its module calls: nothing is linked to it.
    if found and Path(path).suffix not in HEADERS and file.suffix != ".cuh":
        return f"{path} is no header"
    led = Path(path).is_absolute() or ".." in Path(path).parts
    if (led and not found) or any(layer_of(f, root) is None for f in found):
        return f"{path} is not among the headers of src and include"
    return None


def offence(file: Path, path: str, root: Path) -> str | None:
    """Why `file` must not include `path`, which is empty where a macro stands for it."""
    user = layer_of(file, root)
    assert user is not None
    public = file.is_relative_to(root / "include")
    if not path:
        if file == root / LOOPS:
            return None
        return "an include names its file, not a macro"
    if why := _led_elsewhere(path, file, root):
        return why
    if (PYTHON_HEADERS / path).is_file() and (public or user != "python"):
        return "only src/python may include Python.h"
    if path == UMBRELLA:
        return f"{UMBRELLA} is for users of the library"
    found = target(path, file, root)
    if found is None:
        return None
    used, used_public = found
    if public and not used_public:
        return "a public header includes only public headers"
    if may_use(user, used) or (path == METHODS and file == root / "include/taeda/tensor.h"):
        return None
    if public:
        return f"a public header of {user} may not include {path}, which belongs to {used}"
    return f"src/{user} may not include {path}, which belongs to {used}"


def check(root: Path) -> list[str]:
    root = root.resolve()
    found = []
    files = {file for folder in ("src", "include") for file in (root / folder).rglob("*.*")}
    for file in sorted(files - {root / "include" / UMBRELLA}):
        if file.suffix not in SOURCES or not file.is_file():
            continue
        name = file.relative_to(root)
        layer = layer_of(file, root)
        if layer not in ALLOWED:
            found.append(
                f"{name}:1: src/{name.parts[1]} is not one of the layers ({', '.join(ORDER)})"
            )
            continue
        for number, line in enumerate(without_comments(file.read_text()).splitlines(), 1):
            match = INCLUDE.match(line)
            if match and (why := offence(file, match[1] or "", root)):
                found.append(f"{name}:{number}: {why}")
    return found


if __name__ == "__main__":
    offences = check(ROOT)
    print("\n".join(offences) or "includes point one way")
    sys.exit(bool(offences))
