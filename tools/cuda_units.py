"""Kernels for CUDA: translation units over the text in src/kernels/cuda/text.

    python tools/cuda_units.py FOLDER    writes those that changed, and device_loops.cc

For each pointwise functor and each type that it computes in there is a kernel for dense arrays of
that type (of float16 and bfloat16, too, where that is float32), and one for operands of any strides
and dtypes. NVRTC compiles the units for devices (tools/pack_kernels.py), g++ for the emulator of
tests/device/emulator (cmake/emulator.cmake). Launchers find a kernel by its name
(src/kernels/cuda/pointwise.cc):

    add_f16        float16 arrays, computed in float32
    add_f32_any    computed in float32 from whatever there is
    add_f32_list   float32 arrays of several calls, of the functors that torch._foreach_add and the
                   like call, in types for which PyTorch's have such kernels
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gen import autograd, table  # noqa: E402
from gen.__main__ import write  # noqa: E402
from gen.op import TYPE_SETS, Op  # noqa: E402
from gen.pointwise import read_functors  # noqa: E402
from gen.text import cut, join_lines, macro  # noqa: E402

TEXT = "kernels/cuda/text/pointwise.cuh"
LIST_TEXT = "kernels/cuda/text/pointwise_list.cuh"
TEXTS = ROOT / "src" / "kernels" / "cuda" / "text"  # units that are written by hand are *.cu
LIST_INPUTS = 3  # kMaxListInputs of pointwise_list_args.h
WEIGHT_LIMIT = 40  # kernels in one unit: some 2 s of compile time


@dataclass(frozen=True)
class ComputeType:
    """A type that functors compute in, with the types in memory that have a dense kernel."""

    cpp: str
    suffix: str
    stored: dict[str, str]  # suffix -> C++
    family: str  # units that are compiled and packed together
    real: str = ""  # of a complex one


def _compute(kind: str, cpp: str, suffix: str, real: str = "", **more: str) -> ComputeType:
    return ComputeType(cpp, suffix, {suffix: cpp, **more}, kind, real)


COMPUTE_TYPES = {
    "Bool": [ComputeType("bool", "b", {"b": "uint8_t"}, "integer")],
    "Integer": [
        _compute("integer", "uint8_t", "u8"),
        _compute("integer", "int8_t", "i8"),
        _compute("integer", "int16_t", "i16"),
        _compute("integer", "int32_t", "i32"),
        _compute("integer", "int64_t", "i64"),
    ],
    "Floating": [
        _compute("float", "float", "f32", f16="Half", bf16="BFloat16"),
        _compute("double", "double", "f64"),
    ],
    "Complex": [
        _compute("complex", "std::complex<float>", "c64", real="float"),
        _compute("complex", "std::complex<double>", "c128", real="double"),
    ],
}


# The types that an entry says its checks refuse (`refused`): those have no kernel.
REFUSED = {"": (), "bool": ("b",), "half": ("f16", "bf16")}


@dataclass(frozen=True)
class Kernel:
    name: str
    family: str
    text: list[str]


def has_scalars(op: Op) -> bool:
    """Whether the functor's fields have the type that it computes in; else they are doubles."""
    return any(a.stored_type == "Scalar" for a in op.params)


def listed_kinds(op: Op) -> list[str]:
    """The kinds of types of which several calls may be one launch (kernels/cuda/launch_list.h)."""
    listed = any(name.startswith("foreach.") for name in op.python)
    listed = listed and op.name not in ("maximum", "minimum")  # theirs call clamp_min, clamp_max
    if not listed or op.partial is not None or len(op.sig.tensor_args) > LIST_INPUTS:
        return []
    left_out = {"Bool"}
    if op.promote == "float" or op.name in ("floor", "ceil", "trunc", "round", "sign"):
        left_out |= {"Integer"}
    if op.promote == "real":
        left_out |= {"Complex"}  # the results are not of their type
    return [kind for kind in TYPE_SETS[op.types].split() if kind not in left_out]


def _functor(op: Op, functor: str, compute: ComputeType) -> str:
    """The functor's type: templates are those with Scalars."""
    name = f"{functor}<{compute.cpp}>" if has_scalars(op) else functor
    return name if op.partial is None else f"Grad<{name}, {op.partial}>"


def _written(op: Op, compute: ComputeType, stored: str) -> str:
    """What the result of a dense kernel is in memory."""
    if op.promote == "bool":
        return "bool"
    return compute.real if op.promote == "real" and compute.real else stored


def _kernel(name: str, family: str, loop: str, functor: str, body: str) -> Kernel:
    arguments = f"using {name}_args = PointwiseArgs<{loop}, {functor}>;"
    return Kernel(name, family, [arguments, f"TD_GLOBAL({name}, {name}_args, {body})"])


def _kernels_of(op: Op, loop: str, functor: str) -> Iterator[Kernel]:
    converted = ("Bool", "Integer") if op.promote == "float" else ()
    refused = REFUSED[op.refused]
    n = len(op.sig.tensor_args)
    for kind in (k for k in TYPE_SETS[op.types].split() if k not in converted):
        for compute in COMPUTE_TYPES[kind]:
            f, t = _functor(op, functor, compute), compute.cpp
            for suffix, stored in compute.stored.items():
                if suffix in refused:
                    continue
                types = f"{f}, {t}, {stored}, {_written(op, compute, stored)}, {n}"
                name = f"{loop}_{suffix}"
                body = f"dense_kernel<{types}>"
                yield _kernel(name, compute.family, f"DenseArgs<{n}>", f, body)
                if kind in listed_kinds(op):
                    yield _list_kernel(loop, suffix, compute, f, n)
            if compute.suffix in refused:
                continue
            name = f"{loop}_{compute.suffix}_any"
            body = f"strided_kernel<{f}, {t}, {n}>"
            yield _kernel(name, compute.family, f"StridedArgs<{n}>", f, body)


def _list_kernel(loop: str, suffix: str, compute: ComputeType, functor: str, n: int) -> Kernel:
    body = f"list_kernel<{functor}, {compute.cpp}, {compute.stored[suffix]}, {n}>"
    name, family = f"{loop}_{suffix}_list", f"{compute.family}_list"
    return _kernel(name, family, f"ListArgs<{n}>", functor, body)


def _copies(compute: ComputeType) -> Iterator[Kernel]:
    """What moves elements and fills: a functor that gives what it gets."""
    for suffix, stored in compute.stored.items():
        body = f"dense_kernel<Same, {compute.cpp}, {stored}, {stored}, 1>"
        yield _kernel(f"copy_{suffix}", compute.family, "DenseArgs<1>", "Same", body)
        if compute not in COMPUTE_TYPES["Bool"]:
            yield _list_kernel("copy", suffix, compute, "Same", 1)
    body = f"strided_kernel<Same, {compute.cpp}, 1>"
    yield _kernel(f"copy_{compute.suffix}_any", compute.family, "StridedArgs<1>", "Same", body)


def kernels(ops: Iterable[Op]) -> dict[tuple[str, str], list[Kernel]]:
    """The kernels by their functors' header and their family of types."""
    headers = read_functors()
    found: dict[tuple[str, str], list[Kernel]] = defaultdict(list)
    for op in (op for op in ops if op.body == "pointwise"):
        for functor, loop in zip(op.functors.values(), op.loops.values()):
            for kernel in _kernels_of(op, loop, functor):
                found[headers[functor], kernel.family].append(kernel)
    for kind in COMPUTE_TYPES.values():
        for kernel in (k for compute in kind for k in _copies(compute)):
            found["copy", kernel.family].append(kernel)
    return found


def _unit(header: str, members: list[Kernel]) -> str:
    text = LIST_TEXT if members[0].family.endswith("_list") else TEXT
    return join_lines(
        f'#include "{text}"',
        "namespace taeda::cpu::lanes {",
        '#include "kernels/pointwise/dual.h"',
        *([] if header == "copy" else [f'#include "kernels/pointwise/{header}"']),
        "}",
        "namespace taeda::device {",
        "using namespace cpu::lanes;",
        *(line for kernel in members for line in kernel.text),
        "}",
    )


def operators() -> list[Op]:
    return autograd.add_dual_operators(table.load(ROOT / "ops"))


def emit() -> dict[str, str]:
    """File name -> text of every translation unit."""
    texts = {file.name: file.read_text() for file in sorted(TEXTS.glob("*.cu"))}
    return texts | {
        f"{header.removesuffix('.h')}_{family}_{first}.cu": _unit(header, part)
        for (header, family), members in kernels(operators()).items()
        for first, part in cut(members, lambda kernel: kernel.name, WEIGHT_LIMIT).items()
    }


def loops_file(ops: Iterable[Op]) -> str:
    """The functors' names and fields, by the CPU's tables of loops (src/ops/device_loops.h)."""

    def listed(op: Op) -> str:
        return " | ".join(f"dtypes_of(DTypeKind::k{kind})" for kind in listed_kinds(op)) or "0"

    rows = [
        f"X({loop}, {len(op.params)}, {str(has_scalars(op)).lower()}, {listed(op)})"
        for op in ops
        if op.body == "pointwise"
        for loop in op.loops.values()
    ]
    return join_lines(
        '#include "ops/device_loops.h"',
        macro("TD_LOOPS", rows),
        "namespace taeda {",
        "#define TD_DECLARE(NAME, ...) const DenseTable& dense_##NAME();",
        "TD_LOOPS(TD_DECLARE)",
        "Span<const DeviceLoop> device_loops() {",
        "#define TD_ROW(NAME, ...) {dense_##NAME, {#NAME, __VA_ARGS__}},",
        "  static constexpr DeviceLoop rows[] = {TD_LOOPS(TD_ROW)};",
        "  return rows;",
        "}",
        "}  // namespace taeda",
    )


if __name__ == "__main__":
    write(emit() | {"device_loops.cc": loops_file(operators())}, Path(sys.argv[1]))
