"""Kernels: the functions on Views that operators launch, one implementation a device.

A device runs an operator itself where it has all the kernels that the operator launches; views and
bodies that only call other operators need none. Any other operator is on fallback: it copies its
arguments to the CPU, runs there, and copies results and what it changed back (ops/fallback.h).

What calls a kernel calls ``kernels::NAME``, which goes on to the device of the first View
(kernels/launch.h). A device has a kernel where its folder has a file of that name
(src/kernels/cuda/softmax.cc); there is no list to keep. The operator table declares the kernels of
its `kernel:` entries by their schema; those that hand-written operators launch are declared in
headers of src/kernels/cpu.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from .op import Op
from .text import join_lines

FOLDER = Path(__file__).resolve().parent.parent / "src" / "kernels"
VIEW = "const View&"


def declaration(op: Op) -> str:
    """The kernel of an entry: results first, then the arguments in the schema's order."""
    results = [] if op.mutates else [VIEW for _ in op.sig.returns]
    arguments = (VIEW if a.is_tensor else a.cpp_type for a in op.sig.args)
    return f"namespace cpu {{ void {op.source}({', '.join([*results, *arguments])}); }}"


def declarations_header(ops: Iterable[Op]) -> str:
    """What src/kernels/cpu must define; a kernel's own file may include it to be checked."""
    return join_lines(
        "// The kernels that the table names: what src/kernels/cpu must define.",
        "#pragma once",
        '#include "kernels/optional.h"',
        "namespace taeda {",
        *sorted({declaration(op) for op in ops if op.body == "kernel"}),
        "}",
    )


def launched(op: Op) -> list[str]:
    """The names of the kernels that a dispatched operator launches; pointwise operators have one,
    with which a device launches any functor or none."""
    if op.body == "pointwise":
        return ["pointwise"]
    return [op.source] if op.body == "kernel" else op.kernels


def is_native(op: Op, device: str) -> bool:
    """Whether a device runs the operator itself."""
    folder = FOLDER / device
    return not op.host and all((folder / f"{name}.cc").exists() for name in launched(op))


def on_fallback(ops: list[Op], device: str) -> list[str]:
    """The operators that it does not, by name."""
    return sorted(op.ident for op in ops if op.dispatched and not is_native(op, device))
