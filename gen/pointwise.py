"""Dense kernels of pointwise operators: per-instruction-set C++ files from their functors.

A functor is a struct in ``src/kernels/pointwise/*.h`` with a templated ``operator()`` over one
value type ``V`` that stands for a vector, a single number, or a ``Dual`` of either. Its text
includes nothing; one file holds one family.

Parameters are the functor's fields, in the order of the operator's arguments that are not tensors
(the one that chooses among functors left out). The caller lays them out as a plain struct of the
arguments' own C++ types. A field is therefore ``double``, ``int64_t`` or ``bool``; for ``Scalar``
arguments the functor is ``template <class S>`` and the field ``S``, which is converted to the
compute dtype once a call, not once an element.

For each functor of an entry, ``emit`` writes ``const DenseTable& taeda::dense_NAME()`` (loops.cc.in):
float and double as vectors for AVX2 and AVX-512; everything else (integers, bool, complex, and float
below AVX2) one number at a time, compiled once. A functor ``Grad<F, I>`` is a derivative by dual
numbers; second derivatives are rare and never get vectors.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template

from .dtypes import LOOP_TYPES, loop_types
from .op import TYPE_SETS, Op
from .schema import SchemaError
from .text import block, cut, struct

FUNCTORS = Path(__file__).resolve().parent.parent / "src" / "kernels" / "pointwise"
FILE = Template(Path(__file__).with_name("loops.cc.in").read_text())
VECTOR_TYPES = {"float32", "float64"}
WEIGHT_LIMIT = 48  # instantiations in one file: about 5 s of compile time, 1 s of it for headers


@dataclass
class Functor:
    name: str
    header: str
    templated: bool  # template <class S>
    fields: list[tuple[str, str]]  # type, name


@dataclass
class Loop:
    """What is compiled for one functor of an entry."""

    name: str  # dense_NAME
    op: Op
    functor: Functor
    types: list[str]  # compute dtypes

    @property
    def has_vectors(self) -> bool:
        return not VECTOR_TYPES.isdisjoint(self.types)

    @property
    def weight(self) -> int:
        return 1 + len(VECTOR_TYPES.intersection(self.types)) * (
            1 if self.op.partial is None else 3
        )


def read_functors(folder: Path = FUNCTORS) -> dict[str, Functor]:
    """All functors by name, with their fields, from the headers' text."""
    found: dict[str, Functor] = {}
    pattern = re.compile(r"^(template <class S>\n)?struct (\w+) \{\n(.*?)^\};", re.M | re.S)
    for path in sorted(folder.glob("*.h")):
        for template, name, body in pattern.findall(path.read_text()):
            fields = re.findall(r"^  (S|double|bool|int64_t) (\w+);", body, re.M)
            if name in found:
                raise SchemaError(f"functor {name} is in {found[name].header} and in {path.name}")
            found[name] = Functor(name, path.name, bool(template), fields)
    return found


def loops(ops: Iterable[Op]) -> Iterator[Loop]:
    """The dense kernels that pointwise operators need."""
    known = read_functors()
    for op in (op for op in ops if op.body == "pointwise"):
        types = loop_types(*TYPE_SETS[op.types].split())
        if op.promote == "float":
            types = [t for t in types if t.startswith(("float", "complex"))]
        for choice, name in op.functors.items():
            if name not in known:
                raise op.fail(f"no header of src/kernels/pointwise defines the functor '{name}'")
            yield Loop(op.loop_name(choice), op, known[name], types)


def emit(ops: Iterable[Op]) -> dict[str, str]:
    """File name -> text of the translation units that define the dense tables."""
    families: dict[str, list[Loop]] = defaultdict(list)
    for loop in loops(ops):
        families[loop.functor.header].append(loop)
    files = {}
    for header, members in families.items():
        parts = cut(members, lambda loop: loop.name, WEIGHT_LIMIT, lambda loop: loop.weight)
        for first, part in parts.items():
            name = f"{header.removesuffix('.h')}_{first}.cc"
            files[name] = _file(name, header, part)
    return files


def _loader(loop: Loop) -> Iterator[str]:
    """The struct that makes the functor for one compute dtype from the caller's parameters."""
    functor = loop.functor
    kind, stored = functor.name, functor.name
    if functor.templated:
        kind, stored = f"{functor.name}<T>", f"{functor.name}<Scalar>"
    fields = (f"p.{n}.template to<T>()" if t == "S" else f"p.{n}" for t, n in functor.fields)
    made = f"{{{', '.join(fields)}}}"
    if loop.op.partial is not None:
        kind, made = f"Grad<{kind}, {loop.op.partial}>", f"{{{made}}}"
    load = [f"static {kind} load(const void*) {{ return {{}}; }}"]
    if functor.fields:
        given = f"const auto& p = *static_cast<const {stored}*>(params);"
        load = block(f"static {kind} load(const void* params)", given, f"return {kind}{made};")
    yield from struct(f"Load_{loop.name}", "template <class T>", load)


def _table(loop: Loop, vectors: bool) -> Iterator[str]:
    cells = []
    for name, cpp in LOOP_TYPES.items():
        space = "" if vectors and name in VECTOR_TYPES else "lanes::"
        dense = f"{space}dense<{space}Load_{loop.name}, {cpp}, {len(loop.op.sig.tensor_args)}>"
        cells.append(dense if name in loop.types and cpp else "nullptr")
    listed = ",\n    ".join(cells)
    table = f"static constexpr DenseTable table{{{{\n    {listed}}}}};"
    yield from block(f"const DenseTable& table_{loop.name}()", table, "return table;")


def _getter(loop: Loop) -> Iterator[str]:
    dispatch = f"return HWY_DYNAMIC_DISPATCH(table_{loop.name})();"
    yield from block(f"const DenseTable& dense_{loop.name}()", "using namespace cpu;", dispatch)


def _file(name: str, header: str, members: list[Loop]) -> str:
    def lines(of: Iterable[Iterable[str]]) -> str:
        return "\n".join(line for part in of for line in part)

    vectors = [loop for loop in members if loop.has_vectors]
    return FILE.substitute(
        file=name,
        header=header,
        sources=lines([f"//   {loop.name}: ops/{loop.op.file}"] for loop in members),
        loaders=lines(map(_loader, members)),
        vector_loaders=lines(map(_loader, vectors)),
        tables=lines(_table(loop, False) for loop in members),
        vector_tables=lines(_table(loop, True) for loop in members),
        exports=lines([f"HWY_EXPORT(table_{loop.name});"] for loop in members),
        getters=lines(map(_getter, members)),
    )
