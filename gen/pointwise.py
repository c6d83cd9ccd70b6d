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
from dataclasses import dataclass
from pathlib import Path

from .op import TYPE_SETS, Op
from .schema import SchemaError
from .text import cut, join_lines

FUNCTORS = Path(__file__).resolve().parent.parent / "src" / "kernels" / "pointwise"
WEIGHT_LIMIT = 48  # instantiations in one file: about 5 s of compile time, 1 s of it for headers


@dataclass
class Loop:
    """What is compiled for one functor of an entry."""

    name: str  # dense_NAME
    op: Op
    functor: str

    @property
    def kinds(self) -> list[str]:
        """The kinds of dtypes that it computes in."""
        kinds = TYPE_SETS[self.op.types].split()
        converted = ("Bool", "Integer") if self.op.promote == "float" else ()
        return [kind for kind in kinds if kind not in converted]

    @property
    def weight(self) -> int:
        vectors = 2 if "Floating" in self.kinds else 0
        return 1 + vectors * (1 if self.op.partial is None else 3)

    @property
    def row(self) -> str:
        """What TD_LOOPS says of it."""
        op, types = self.op, " | ".join(f"kinds::k{kind}" for kind in self.kinds)
        partial = -1 if op.partial is None else op.partial
        counts = f"{len(op.params)}, {len(op.sig.tensor_args)}, {partial}"
        return f"X({self.name}, {self.functor}, {counts}, {types})"


def read_functors(folder: Path = FUNCTORS) -> dict[str, str]:
    """The header of every functor, by name."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.h")):
        for name in re.findall(r"^struct (\w+) \{$", path.read_text(), re.M):
            if name in found:
                raise SchemaError(f"functor {name} is in {found[name]} and in {path.name}")
            found[name] = path.name
    return found


def loops(ops: Iterable[Op]) -> Iterator[tuple[str, Loop]]:
    """The dense kernels that pointwise operators need, with the functor's header."""
    known = read_functors()
    for op in (op for op in ops if op.body == "pointwise"):
        for choice, name in op.functors.items():
            if name not in known:
                raise op.fail(f"no header of src/kernels/pointwise defines the functor '{name}'")
            yield known[name], Loop(op.loop_name(choice), op, name)


def emit(ops: Iterable[Op]) -> dict[str, str]:
    """File name -> text of the translation units that define the dense tables."""
    families: dict[str, list[Loop]] = defaultdict(list)
    for header, loop in loops(ops):
        families[header].append(loop)
    files = {}
    for header, members in families.items():
        parts = cut(members, lambda loop: loop.name, WEIGHT_LIMIT, lambda loop: loop.weight)
        for first, part in parts.items():
            name = f"{header.removesuffix('.h')}_{first}.cc"
            files[name] = _file(name, header, part)
    return files


def _file(name: str, header: str, members: list[Loop]) -> str:
    return join_lines(
        f'#define TD_FUNCTORS "kernels/pointwise/{header}"',
        " \\\n  ".join(["#define TD_LOOPS(X)", *(loop.row for loop in members)]),
        "#undef HWY_TARGET_INCLUDE",
        f'#define HWY_TARGET_INCLUDE "loops/{name}"',
        '#include "kernels/cpu/pointwise/loops-inl.h"',
    )
