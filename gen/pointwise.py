"""Dense kernels of pointwise operators: what is compiled of their functors, by file.

A functor is a struct in ``src/kernels/pointwise/*.h`` with a templated ``operator()`` over one
value type ``V`` that stands for a vector, a single number, or a ``Dual`` of either. Its text
includes nothing; one file holds one family.

Parameters are the functor's fields, in the order of the operator's arguments that are not tensors
(the one that chooses among functors left out). The caller lays them out as a plain struct of the
arguments' own C++ types. A field is therefore ``double``, ``int64_t`` or ``bool``; for ``Scalar``
arguments the functor is ``template <class S>`` and the field ``S``, which is converted to the
compute dtype once a call, not once an element.

For each functor of an entry, the loops of all dtypes are compiled (kernels/cpu/pointwise/loops-inl.h).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .op import TYPE_SETS, Op
from .schema import SchemaError
from .text import cut, join_lines

FUNCTORS = Path(__file__).resolve().parent.parent / "src" / "kernels" / "pointwise"
WEIGHT_LIMIT = 48  # instantiations in one file: about 5 s of compile time, 1 s of it for headers


class Loop(NamedTuple):
    """What is compiled for one functor of an entry."""

    name: str  # dense_NAME
    weight: int
    row: str  # what TD_LOOPS says of it


def read_functors(folder: Path = FUNCTORS) -> dict[str, str]:
    """The header of every functor, by name."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.h")):
        for name in re.findall(r"^struct (\w+) \{$", path.read_text(), re.M):
            if name in found:
                raise SchemaError(f"functor {name} is in {found[name]} and in {path.name}")
            found[name] = path.name
    return found


def _loops(op: Op) -> Iterator[Loop]:
    """The dense kernels of an entry."""
    # The kinds of dtypes that they compute in.
    converted = ("Bool", "Integer") if op.promote == "float" else ()
    kinds = [f"kinds::k{kind}" for kind in TYPE_SETS[op.types].split() if kind not in converted]
    vectors = 2 if "kinds::kFloating" in kinds else 0
    weight = 1 + vectors * (1 if op.partial is None else 3)
    partial = -1 if op.partial is None else op.partial
    counts = f"{len(op.params)}, {len(op.sig.tensor_args)}, {partial}"
    for choice, functor in op.functors.items():
        name = op.loops[choice]
        yield Loop(name, weight, f"X({name}, {functor}, {counts}, {' | '.join(kinds)})")


def emit(ops: Iterable[Op]) -> dict[str, str]:
    """File name -> text of the translation units that define the dense tables."""
    known = read_functors()
    families: dict[str, list[Loop]] = defaultdict(list)
    for op in (op for op in ops if op.body == "pointwise"):
        for functor, loop in zip(op.functors.values(), _loops(op)):
            if functor not in known:
                raise op.fail(f"no header of src/kernels/pointwise defines functor '{functor}'")
            families[known[functor]].append(loop)
    files = {}
    for header, members in families.items():
        parts = cut(members, lambda loop: loop.name, WEIGHT_LIMIT, lambda loop: loop.weight)
        for first, part in parts.items():
            name = f"{header.removesuffix('.h')}_{first}.cc"
            files[name] = join_lines(
                f'#define TD_FUNCTORS "kernels/pointwise/{header}"',
                " \\\n  ".join(["#define TD_LOOPS(X)", *(loop.row for loop in part)]),
                "#undef HWY_TARGET_INCLUDE",
                f'#define HWY_TARGET_INCLUDE "loops/{name}"',
                '#include "kernels/cpu/pointwise/loops-inl.h"',
            )
    return files
