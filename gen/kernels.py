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


def declaration(op: Op) -> str:
    """The kernel of an entry: results first, then the arguments in the schema's order."""
    results = [] if op.mutates else ["const View&"] * len(op.sig.returns)
    arguments = ("const View&" if a.is_tensor else a.cpp_type for a in op.sig.args)
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


def is_native(op: Op, device: str) -> bool:
    """Whether a device runs the operator itself."""
    launched = (FOLDER / device / f"{name}.cc" for name in op.launched)
    return not op.host and all(path.exists() for path in launched)
