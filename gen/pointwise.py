"""Dense kernels of pointwise operators: per-instruction-set C++ files from a list of functors.

A functor is a struct in ``src/kernels/pointwise/*.h`` with a templated ``operator()`` over one
value type ``V`` that stands for a vector, a single number, or a ``Dual`` of either. Its text
includes nothing; one file holds one family.

Parameters are the functor's fields, in the order of the operator's arguments that are not tensors
(the one that chooses among functors left out). The caller lays them out as a plain struct of the
arguments' own C++ types. A field is therefore ``double``, ``int64_t`` or ``bool``; for ``Scalar``
arguments the functor is ``template <class S>`` and the field ``S``, which is converted to the
compute dtype once a call, not once an element.

For each :class:`Entry`, ``emit`` writes ``const DenseTable& taeda::dense_NAME()``: float and double
as vectors for AVX2 and AVX-512; everything else (integers, bool, complex, and float below AVX2) one
number at a time, compiled once. A functor ``Grad<F, I>`` is a derivative by dual numbers; second
derivatives are rare and never get vectors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .dtypes import LOOP_TYPES
from .pieces import cut
from .schema import SchemaError

FUNCTORS = Path(__file__).resolve().parent.parent / "src" / "kernels" / "pointwise"
VECTOR_TYPES = ("float32", "float64")
WEIGHT_LIMIT = 48  # instantiations in one file: about 5 s of compile time, 1 s of it for headers


@dataclass
class Entry:
    name: str  # dense_NAME
    functor: str  # "Gelu", "Grad<Gelu, 0>", "Grad<Grad<Gelu, 0>, 1>"
    n_inputs: int
    types: list[str]  # compute dtypes
    result: str = "same"  # same, bool or real; the functor's own result type decides
    where: str = ""  # table entry that asked for it


@dataclass
class Functor:
    name: str
    header: str
    templated: bool  # template <class S>
    fields: list[tuple[str, str]]  # type, name


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


def emit(entries: list[Entry]) -> dict[str, str]:
    """File name -> text of the translation units that define the dense tables."""
    functors = read_functors()
    families: dict[str, list[Entry]] = {}
    for entry in entries:
        base = base_functor(entry.functor)
        if base not in functors:
            raise SchemaError(f"{entry.where or entry.name}: no functor {base} in {FUNCTORS}")
        families.setdefault(functors[base].header, []).append(entry)
    files = {}
    for header, members in families.items():
        parts = cut(members, lambda entry: entry.name, WEIGHT_LIMIT, _weight)
        for first, part in parts.items():
            name = f"{header.removesuffix('.h')}_{first}.cc"
            files[name] = _file(name, header, part, functors)
    return files


def base_functor(functor: str) -> str:
    """The functor inside Grad<...>."""
    return re.sub(r"^Grad<|, \d+>$", "", functor)


def _is_grad(entry: Entry) -> bool:
    return entry.functor.startswith("Grad<")


def _weight(entry: Entry) -> int:
    return 1 + sum(t in VECTOR_TYPES for t in entry.types) * (3 if _is_grad(entry) else 1)


def _loader(entry: Entry, functor: Functor) -> str:
    """The struct that makes the functor for one compute dtype from the caller's parameters."""
    kind = f"{functor.name}<T>" if functor.templated else functor.name
    full = re.sub(rf"\b{functor.name}\b", kind, entry.functor)
    fields = [f"p.{n}.template to<T>()" if t == "S" else f"p.{n}" for t, n in functor.fields]
    depth = 2 if _is_grad(entry) else 1
    made = "{" * depth + ", ".join(fields) + "}" * depth
    lines = [f"struct Load_{entry.name} {{", "  template <class T>"]
    if functor.fields:
        stored = f"{functor.name}<Scalar>" if functor.templated else functor.name
        lines += [
            f"  static {full} load(const void* params) {{",
            f"    const auto& p = *static_cast<const {stored}*>(params);",
            f"    return {full}{made};",
            "  }",
        ]
    else:
        lines += [f"  static {full} load(const void*) {{ return {{}}; }}"]
    return "\n".join([*lines, "};"])


def _table(entry: Entry, vectors: bool) -> str:
    cells = []
    for name, cpp in LOOP_TYPES.items():
        space = "" if vectors and name in VECTOR_TYPES else "lanes::"
        loop = f"{space}dense<{space}Load_{entry.name}, {cpp}, {entry.n_inputs}>"
        cells.append(loop if name in entry.types and cpp else "nullptr")
    listed = ",\n    ".join(cells)
    return (
        f"const DenseTable& table_{entry.name}() {{\n"
        f"  static constexpr DenseTable table{{{{\n    {listed}}}}};\n"
        f"  return table;\n}}"
    )


def _file(name: str, header: str, entries: list[Entry], functors: dict[str, Functor]) -> str:
    has_vectors = [e for e in entries if any(t in VECTOR_TYPES for t in e.types)]
    loaders, vector_loaders = (
        "\n".join(_loader(e, functors[base_functor(e.functor)]) for e in chosen)
        for chosen in (entries, has_vectors)
    )
    tables, vector_tables = (
        "\n".join(_table(e, vectors) for e in entries) for vectors in (False, True)
    )
    sources = "\n".join(f"//   {e.name}: {e.where}" for e in entries)
    includes = f'#include "kernels/pointwise/dual.h"\n#include "kernels/pointwise/{header}"'
    exports = "\n".join(f"HWY_EXPORT(table_{e.name});" for e in entries)
    getters = "\n".join(
        f"const DenseTable& dense_{e.name}() {{\n  using namespace cpu;\n"
        f"  return HWY_DYNAMIC_DISPATCH(table_{e.name})();\n}}"
        for e in entries
    )
    return f"""\
// Generated by gen/pointwise.py from
{sources}
#include "kernels/cpu/pointwise/dense_lanes.h"
#include "kernels/cpu/pointwise/loop.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "loops/{name}"
#include "kernels/cpu/simd/simd.h"
#include "kernels/cpu/pointwise/dense-inl.h"

#ifndef TAEDA_LANES_ONCE
#define TAEDA_LANES_ONCE
namespace taeda::cpu::lanes {{
{includes}
{loaders}
}}  // namespace taeda::cpu::lanes
#endif

HWY_BEFORE_NAMESPACE();
namespace taeda::cpu::HWY_NAMESPACE {{
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
{tables}
#else
{includes}
{vector_loaders}
{vector_tables}
#endif
}}  // namespace taeda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace taeda::cpu {{
{exports}
}}  // namespace taeda::cpu
namespace taeda {{
{getters}
}}  // namespace taeda
#endif
"""
