"""Checks what the compiler read for each object of the library, whichever way it was included.

check_layers.py reads source text, which can be spelled in ways that it does not know;
check_links.py reads symbols, and inline functions have none. The compiler notes every file that it
opened. Each of the library must belong to a layer that the object's own layer uses, directly or
through others (layers.py), and no object of the kernels may have read a header of tensors. Prints
each offence and exits 1.
"""

from __future__ import annotations

import argparse
import os.path
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from check_layers import layer_of
from check_links import GENERATED, TESTS, owner
from layers import ALLOWED, PUBLIC_HEADERS

ROOT = Path(__file__).resolve().parent.parent
NINJA = Path(sys.executable).parent / "ninja"
# Kernels compute on pointers and strides.
TENSORS = {"include/taeda/tensor.h", "include/taeda/tensor_impl.h"}


@cache
def usable(layer: str) -> frozenset[str]:
    """The layer and those below it."""
    return frozenset({layer}.union(*map(usable, ALLOWED[layer])))


def dependencies(build: Path) -> Iterator[tuple[str, str]]:
    """(object, file) for each file that the compiler read for an object of the library."""
    command = [str(NINJA), "-C", str(build), "-t", "deps"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    read = ""
    for line in text.splitlines():
        if line.startswith("    "):
            if ".dir/" in read and read.endswith(".o") and not TESTS.search(read):
                yield read, os.path.normpath(build / line.strip())
        else:
            read = line.partition(": #deps")[0]


def layer_of_dependency(file: Path, root: Path, build: Path) -> str | None:
    """The layer that a file belongs to, generated ones included; None for others'."""
    if not file.is_relative_to(build / "generated"):
        return layer_of(file, root)
    folder, *rest = file.relative_to(build / "generated").parts
    if folder == "include":
        return PUBLIC_HEADERS.get(Path(rest[-1]).stem, "ops")
    return "ops" if folder == "op" else GENERATED.get(folder)


def check(root: Path, build: Path) -> list[str]:
    layer = cache(lambda file: layer_of_dependency(Path(file), root, build))
    tensors = {str(root / name) for name in TENSORS}
    found, objects = set(), set()
    for name, file in dependencies(build):
        objects.add(name)
        user, used = owner(name).layer, layer(file)
        source = name.partition(".dir/")[2].removesuffix(".o")
        if used and used not in usable(user):
            found.add(f"{source}: the compiler read {Path(file).name}, which belongs to {used}")
        elif user == "kernels" and file in tensors:
            found.add(f"{source}: the compiler read {Path(file).name}, but kernels know no tensors")
    return sorted(found) if objects else [f"{build} holds no objects: build first"]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    offences = check(ROOT, ROOT / parser.parse_args().build)
    print("\n".join(offences) or "the compiler read what the layers may use")
    sys.exit(bool(offences))
