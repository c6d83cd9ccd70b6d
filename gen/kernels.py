"""Kernels: the functions on Views that operators launch, one implementation a device.

A device runs an operator itself where it has all the kernels that the operator launches; views and
bodies that only call other operators need none. Any other operator is on fallback: it copies its
arguments to the CPU, runs there, and copies results and what it changed back (ops/fallback.h).

What calls a kernel calls ``kernels::NAME``, which is generated: it looks at the device of the first
View and goes on to ``cpu::NAME`` or ``cuda::NAME``, or returns on meta, whose tensors have shapes
only. A device has a kernel where its folder has a file of that name (src/kernels/cuda/softmax.cc);
there is no list to keep. The operator table declares the kernels of its `kernel:` entries by their
schema; those that hand-written operators launch are declared in src/kernels/hand_called.yaml.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from .op import Op
from .text import block, join_lines

FOLDER = Path(__file__).resolve().parent.parent / "src" / "kernels"
HAND_CALLED = FOLDER / "hand_called.yaml"
VIEW, VIEWS = "const View&", "Span<const View>"


@dataclass(frozen=True)
class Kernel:
    name: str
    parameters: tuple[tuple[str, str], ...]  # C++ type, name
    header: str = ""  # declares cpu::NAME and the types of its arguments

    @property
    def declaration(self) -> str:
        return f"void {self.name}({', '.join(f'{kind} {name}' for kind, name in self.parameters)});"


def of_entry(op: Op) -> Kernel:
    """The kernel of an entry: results first, then the arguments in the schema's order."""
    results = [] if op.mutates else [(VIEW, op.sig.local(r)) for r in op.sig.returns]
    arguments = [
        (VIEW if a.is_tensor else VIEWS if a.is_tensor_list else a.cpp_type, a.name)
        for a in op.sig.args
    ]
    return Kernel(op.source, (*results, *arguments))


def hand_called(path: Path = HAND_CALLED) -> list[Kernel]:
    """The kernels of hand_called.yaml; a parameter without a type is a View."""
    found = []
    for header, entries in yaml.safe_load(path.read_text())["kernels"].items():
        for entry in entries:
            ((name, parameters),) = entry.items()
            typed = [
                (VIEW, p) if isinstance(p, str) else next((kind, n) for n, kind in p.items())
                for p in parameters
            ]
            found.append(Kernel(name, tuple(typed), header))
    return found


def known(ops: Iterable[Op]) -> list[Kernel]:
    """Every kernel once, whichever entries share it, by name."""
    by_types: dict[tuple[str, ...], Kernel] = {}
    for kernel in [*hand_called(), *(of_entry(op) for op in ops if op.body == "kernel")]:
        by_types.setdefault((kernel.name, *(kind for kind, _ in kernel.parameters)), kernel)
    return [by_types[key] for key in sorted(by_types)]


def of_device(device: str) -> set[str]:
    """The kernels that a device has: the names of the files in its folder."""
    return {path.stem for path in (FOLDER / device).glob("*.cc")}


def launched(op: Op) -> list[str]:
    """The names of the kernels that a dispatched operator launches; pointwise operators have one,
    with which a device launches any functor or none."""
    if op.body == "pointwise":
        return ["pointwise"]
    return [op.source] if op.body == "kernel" else op.kernels


def is_native(op: Op, device: str) -> bool:
    """Whether a device runs the operator itself."""
    return not op.host and set(launched(op)) <= of_device(device)


def on_fallback(ops: list[Op], device: str) -> list[str]:
    """The operators that it does not, by name."""
    return sorted(op.ident for op in ops if op.dispatched and not is_native(op, device))


def headers(kernels: Iterable[Kernel]) -> dict[str, str]:
    """kernel/NAME.h for what hand-written operators launch."""
    files = {}
    of_hand = (kernel for kernel in kernels if kernel.header)
    for name, overloads in itertools.groupby(of_hand, lambda kernel: kernel.name):
        first, *others = overloads
        files[f"kernel/{name}.h"] = join_lines(
            "#pragma once",
            f'#include "{first.header}"',
            "namespace taeda::kernels {",
            *(k.declaration for k in (first, *others)),
            "}",
        )
    return files


def switch_file(kernels: list[Kernel]) -> str:
    """The definitions of kernels::NAME."""
    on_cuda = of_device("cuda")
    bodies = [line for k in kernels for line in _switch(k, k.name in on_cuda)]
    return join_lines(
        '#include "kernels/launch.h"',
        '#include "kernels_decl.h"',
        *(f'#include "{name}"' for name in sorted({k.header for k in kernels} - {""})),
        "namespace taeda {",
        *(f"namespace cuda {{ {k.declaration} }}" for k in kernels if k.name in on_cuda),
        *(f"namespace kernels {{ {k.declaration} }}" for k in kernels),
        *bodies,
        "}  // namespace taeda",
    )


def _switch(kernel: Kernel, on_cuda: bool) -> list[str]:
    parameters = ", ".join(f"{kind} {name}" for kind, name in kernel.parameters)
    names = ", ".join(name for _, name in kernel.parameters)
    first = kernel.parameters[0][1]
    cuda = f"cuda::{kernel.name}({names})"
    absent = f'kernels::fail_absent("{kernel.name}", device_of({first}))'
    return block(
        f"void kernels::{kernel.name}({parameters})",
        block(
            f"switch (device_of({first}).type)",
            f"case DeviceType::kCPU: return cpu::{kernel.name}({names});",
            "case DeviceType::kMeta: return;",
            f"case DeviceType::kCUDA: return {cuda if on_cuda else absent};",
        ),
    )


def declarations_header(kernels: Iterable[Kernel]) -> str:
    """What src/kernels/cpu must define; a kernel's own file may include it to be checked."""
    return join_lines(
        "// The kernels that the table names: what src/kernels/cpu must define.",
        "#pragma once",
        '#include "kernels/optional.h"',
        "namespace taeda { class Generator; }",
        "namespace taeda::cpu {",
        *sorted(k.declaration for k in kernels if not k.header),
        "}",
    )
