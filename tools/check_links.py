"""Checks what the object files of the library really use: symbols point one way through the layers.

A check of includes can be fooled: a public header declares functions that a higher layer defines
(`Tensor::requires_grad`), and a name may be declared by hand. Here each undefined symbol of an
object in the build folder is looked up where it is defined, and that object's layer must be one
the user's layer may use (layers.py). Nor may hand-written operators call kernels past the device's
choice, in whatever spelling: check_kernels.py reads the text, this the symbols. Prints each offence
and exits 1; KNOWN holds what is left.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from check_kernels import HOST, launched_kernels, table_kernels
from layers import ALLOWED, may_use

ROOT = Path(__file__).resolve().parent.parent
# Generated code by its folder; methods of Tensor forward to operators.
GENERATED = {
    "loops": "kernels",
    "kernels": "kernels",
    "src": "autograd",
    "methods": "autograd",
    "python": "python",
}
# Operators are called through generated entries, which any layer from ops on may call.
ENTRIES = {"src", "methods"}
# What src/ops asks of autograd: composites that choose their way by whether a gradient is recorded,
# and factories with requires_grad=True. This set may only shrink.
KNOWN = {
    "taeda::Tensor::is_leaf() const",
    "taeda::Tensor::requires_grad() const",
    "taeda::Tensor::requires_grad_(bool)",
}

# Kernels compute on pointers and strides.
TENSOR = re.compile(r"\btaeda::Tensor(Impl)?::")

# A kernel of one device, or one that knows the device.
KERNEL = re.compile(r"(?:\w[\w<>: ]* )?taeda::(cpu|kernels)::(?P<name>\w+)(?:<.*>)?\(")

SYMBOL = re.compile(r"(?P<file>.+?\.o): (?P<name>.+?) (?P<kind>[A-Za-z])( +[0-9a-f]*)*$")


class Owner(NamedTuple):
    layer: str
    entries: bool  # whether it holds operators' generated entries


def owner(object_file: str) -> Owner:
    parts = object_file.partition(".dir/")[2].split("/")
    if parts[0] == "generated":
        return Owner(GENERATED[parts[1]], parts[1] in ENTRIES)
    if parts[0] == "cuda_units":
        return Owner("ops" if parts[1].startswith("device_loops") else "kernels", False)
    return Owner(parts[1], False)


# Objects of tests: their sources' folder, and what is written into the build folder.
TESTS = re.compile(r"/tests/|/taeda_tests\.dir/")


def symbols(objects: Iterable[Path]) -> tuple[dict[str, set[str]], list[tuple[str, str]]]:
    """Objects that define each symbol, and (object, symbol) for each symbol that one needs."""
    command = ["nm", "-P", "-A", "-C", *map(str, objects)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    defined: dict[str, set[str]] = defaultdict(set)
    needed = []
    for line in output.splitlines():
        if not (match := SYMBOL.match(line)):
            continue
        if match["kind"] == "U":
            needed.append((match["file"], match["name"]))
        elif match["kind"] in "TDBRVWu":
            defined[match["name"]].add(match["file"])
    return defined, needed


def offence(user: Owner, owners: list[Owner], symbol: str) -> str | None:
    """Why `user` must not need `symbol`, which any of `owners` may stand for."""
    calls_operators = user.entries or user.layer == "ops" or "ops" in ALLOWED[user.layer]
    if user.layer == "kernels" and TENSOR.search(symbol):
        return f"uses {symbol}, but kernels know no tensors"
    if symbol in KNOWN or any(
        may_use(user.layer, o.layer) or (o.entries and calls_operators) for o in owners
    ):
        return None
    return f"uses {symbol}, which {', '.join(sorted({o.layer for o in owners}))} defines"


def kernel_call(user: Owner, symbol: str, root: Path) -> str | None:
    """Why hand-written code of src/ops must not call this kernel. Those that have a launcher are
    called by it, which is inline."""
    match = KERNEL.match(symbol)
    if user != Owner("ops", False) or not match:
        return None
    if match["name"] in table_kernels(root):
        return f"calls the kernel {match['name']} of the table"
    if match[1] == "cpu" and match["name"] not in HOST | launched_kernels(root):
        return f"calls cpu::{match['name']}, which knows one device"
    return None


def check(build: Path, root: Path = ROOT) -> list[str]:
    objects = [o for o in build.glob("CMakeFiles/*.dir/**/*.o") if not TESTS.search(str(o))]
    defined, needed = symbols(objects)
    found = set()
    for file, name in needed:
        if name not in defined:
            continue
        user, owners = owner(file), [owner(o) for o in sorted(defined[name])]
        why = offence(user, owners, name) or kernel_call(user, name, root)
        if why:
            found.add(f"{file.partition('.dir/')[2].removesuffix('.o')}: {why}")
    return sorted(found)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build")
    offences = check(ROOT / parser.parse_args().build)
    print("\n".join(offences) or "symbols point one way")
    sys.exit(bool(offences))
