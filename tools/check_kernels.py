"""Checks that kernels are launched as kernels::NAME, which knows the device, never as cpu::NAME,
and that nobody asks for device meta by name.

A kernel may assume its contract (docs/notes/contracts.md): those of the operator table are called
by generated code only, those that headers of src/kernels/cpu declare by the operators that name
them. Functions of src/kernels/cpu that are no kernels are those of HOST and get a host_view.
Whether there are elements to read or to write says has_memory(device). Prints each offence as
file:line and exits 1.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

from cxx_text import without_comments

ROOT = Path(__file__).resolve().parent.parent
KERNEL = re.compile(r"^\s+kernel:(.*)", re.M)  # a name, or one for each number of dimensions
# Types (cpu::ConvGeometry) are CamelCase; TrueElements is one that reads when it is made.
CALL = re.compile(r"\b(cpu|kernels)\s*::\s*([a-z_0-9]+|TrueElements)\b")
# A function of one device with the View of a tensor that may lie on another.
DEVICE_VIEW = re.compile(r"\bcpu\s*::\s*\w+[^;{}]*?\bview_of\(")
LAUNCHER = re.compile(r"\bTD_KERNEL\((\w+)\)")
# A call without a namespace, which the arguments' would complete, with the View of a tensor.
BARE_CALL = re.compile(
    r"(?<![\w:.>~])(?P<name>[a-z_]\w*)\((?=[^;{}]*?\b(?:view_of|host_view)\()(?!\s*\))"
)
# What would let them be called by another name.
OPENED = re.compile(
    r"\busing\s+namespace\s+[\w:\s]*?\b(cpu|kernels)\s*;|\bnamespace\s+\w+\s*=[\w:\s]*?\b(cpu|kernels)\s*;"
    r"|\bnamespace\s+(?:\w+\s*::\s*)*(cpu|kernels)\s*(?:::\s*\w+\s*)*\{"
)
# A question about one device without memory.
META = re.compile(
    r"\bis_meta\s*\(|[!=]=\s*(?:\w+\s*::\s*)?DeviceType\s*::\s*kMeta\b"
    r"|\bDeviceType\s*::\s*kMeta\s*[!=]=|\bcase\s+(?:(?:\w+\s*::\s*)?DeviceType\s*::\s*)?kMeta\b"
)
META_NAMED = {
    "src/core/device_memory.h": "has_memory()",
    "src/core/tensor_impl.cc": "the key of each device",
    "src/kernels/launch.h": "the launcher, which has nothing to launch there",
    "src/python/dlpack.cc": "DLPack's number of each device",
    "src/python/properties.cc": "Tensor.is_meta",
    "src/python/torch_dispatch.cc": "the key of each device",
}
# Functions of src/kernels/cpu that hand-written operators call by name: what they return goes to
# the host, so the operators say `host: true`; or they ask about layouts and types only.
HOST = {
    "TrueElements",  # nonzero, masks
    "add_steps",  # factories fill on the host
    "bincount",
    "bits_in_use",
    "count_up",  # factories fill on the host
    "interleave",  # stack of small tensors
    "onednn_convolves",  # types
    "pool_sizes",  # sizes
    "run_starts",
    "sort_rows",
    "sum_by_index",
}


def line_of(text: str, match: re.Match[str]) -> int:
    return text.count("\n", 0, match.start()) + 1


@functools.cache
def table_kernels(root: Path) -> set[str]:
    """The kernels that entries of the table name."""
    names: set[str] = set()
    for file in root.glob("ops/**/*.yaml"):
        for listed in KERNEL.findall(file.read_text()):
            names.update(re.findall(r"[A-Za-z_]\w*", listed))
    return names


@functools.cache
def launched_kernels(root: Path) -> set[str]:
    """The kernels that headers declare with a launcher, kernels::NAME."""
    headers = root.glob("src/kernels/**/*.h")
    return {name for header in headers for name in LAUNCHER.findall(header.read_text())}


def check(root: Path) -> list[str]:
    of_table = table_kernels(root)
    found = []
    for file in sorted([*root.glob("src/**/*.cc"), *root.glob("src/**/*.h")]):
        name = file.relative_to(root)
        text = without_comments(file.read_text())
        for match in [] if str(name) in META_NAMED else META.finditer(text):
            found.append(f"{name}:{line_of(text, match)}: asks for meta; ask has_memory(device)")
        if name.parts[1] == "kernels":
            continue
        for match in CALL.finditer(text):
            device, called = match.groups()
            where = f"{name}:{line_of(text, match)}"
            if called in of_table:
                found.append(f"{where}: calls the kernel {called} of the table")
            elif device == "cpu" and name.parts[1] == "ops" and called not in HOST:
                found.append(f"{where}: calls cpu::{called}, which knows one device")
        for match in BARE_CALL.finditer(text):
            if name.parts[1] == "ops" and match["name"] in of_table | launched_kernels(root):
                where = f"{name}:{line_of(text, match)}"
                found.append(f"{where}: calls the kernel {match['name']} without kernels::")
        for match in DEVICE_VIEW.finditer(text):
            where = f"{name}:{line_of(text, match)}"
            found.append(f"{where}: gives cpu:: a view_of, which may be a device's")
        for match in OPENED.finditer(text):
            found.append(f"{name}:{line_of(text, match)}: hides the namespace of the kernels")
    return found


if __name__ == "__main__":
    offences = check(ROOT)
    print("\n".join(offences) or "kernels are launched through kernels::NAME")
    sys.exit(bool(offences))
