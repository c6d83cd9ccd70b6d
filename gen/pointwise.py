"""Dense kernels of pointwise operators: what is compiled of their functors, by file.

A functor is a struct of ``src/kernels/pointwise/*.h`` (docs/notes/functors.md). For each one of an
entry, the loops of all dtypes are compiled (kernels/cpu/pointwise/loops-inl.h).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from .op import TYPE_SETS, Op
from .schema import SchemaError
from .text import cut, join_lines, macro

FUNCTORS = Path(__file__).resolve().parent.parent / "src" / "kernels" / "pointwise"
WEIGHT_LIMIT = 48  # instantiations in one file: about 5 s of compile time, 1 s of it for headers


def read_functors(folder: Path = FUNCTORS) -> dict[str, str]:
    """The header of every functor, by name."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.h")):
        for name in re.findall(r"^struct (\w+) \{$", path.read_text(), re.M):
            if name in found:
                raise SchemaError(f"functor {name} is in {found[name]} and in {path.name}")
            found[name] = path.name
    return found


def _compiled(op: Op) -> tuple[int, str]:
    """The weight of each of an entry's loops, and what TD_LOOPS says of all."""
    converted = ("Bool", "Integer") if op.promote == "float" else ()
    kinds = [f"kinds::k{kind}" for kind in TYPE_SETS[op.types].split() if kind not in converted]
    weight = 1 if "kinds::kFloating" not in kinds else 3 if op.partial is None else 7
    partial = -1 if op.partial is None else op.partial
    counts = f"{len(op.params)}, {len(op.sig.tensor_args)}, {partial}"
    return weight, f"{counts}, {' | '.join(kinds)}"


def emit(ops: Iterable[Op]) -> dict[str, str]:
    """File name -> text of the translation units that define the dense tables."""
    known = read_functors()
    rows: dict[str, str] = {}  # by the loop's name, which is dense_NAME in C++
    weights: dict[str, int] = {}
    families: dict[str, list[str]] = defaultdict(list)
    for op in (op for op in ops if op.body == "pointwise"):
        weight, compiled = _compiled(op)
        for functor, loop in zip(op.functors.values(), op.loops.values()):
            if functor not in known:
                raise op.fail(f"no header of src/kernels/pointwise defines functor '{functor}'")
            families[known[functor]].append(loop)
            rows[loop] = f"X({loop}, {functor}, {compiled})"
            weights[loop] = weight
    files = {}
    for header, loops in families.items():
        for first, part in cut(loops, str, WEIGHT_LIMIT, weights.__getitem__).items():
            name = f"{header.removesuffix('.h')}_{first}.cc"
            files[name] = join_lines(
                f'#define TD_FUNCTORS "kernels/pointwise/{header}"',
                macro("TD_LOOPS", map(rows.__getitem__, part)),
                "#undef HWY_TARGET_INCLUDE",
                f'#define HWY_TARGET_INCLUDE "loops/{name}"',
                '#include "kernels/cpu/pointwise/loops-inl.h"',
            )
    return files
