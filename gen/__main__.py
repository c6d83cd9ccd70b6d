"""python -m gen --ops ops --out DIR: writes everything that follows from the operator table.

Files are rewritten only when their text changed, so that a change to one entry rebuilds little.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import autograd, cpp, pointwise, python, table
from .schema import SchemaError


def chunks(ops: list[table.Op], size: int) -> dict[str, list[table.Op]]:
    """Operators by file stem: a family's entries in pieces of at most `size`."""
    families: dict[str, list[table.Op]] = {}
    for op in ops:
        families.setdefault(op.file.removesuffix(".yaml"), []).append(op)
    return {
        f"{family}_{i // size}": members[i : i + size]
        for family, members in families.items()
        for i in range(0, len(members), size)
    }


INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
FLOATS = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
COMPUTE_TYPES = {  # table types -> the dtypes that dense loops are compiled for
    "bool": ["bool"],
    "integral": INTEGERS,
    "integral_bool": ["bool", *INTEGERS],
    "floating": FLOATS,
    "inexact": [*FLOATS, *COMPLEX],
    "real": ["bool", *INTEGERS, *FLOATS],
    "numeric": [*INTEGERS, *FLOATS, *COMPLEX],
    "all": ["bool", *INTEGERS, *FLOATS, *COMPLEX],
}


def pointwise_entries(ops: list[table.Op]) -> list[pointwise.Entry]:
    """The dense kernels that pointwise operators need, one entry a functor choice."""
    entries = []
    for op in ops:
        if op.body != "pointwise":
            continue
        types = COMPUTE_TYPES[op.types]
        if op.promote == "float":
            types = [t for t in types if t.startswith(("float", "complex"))]
        for choice, functor in op.functors.items():
            entries.append(
                pointwise.Entry(
                    name=f"{op.ident}_{choice}" if choice else op.ident,
                    functor=functor,
                    n_inputs=len(op.sig.tensor_args),
                    types=types,
                    result={"bool": "bool", "real": "real"}.get(op.promote, "same"),
                    where=f"ops/{op.file}",
                )
            )
    return entries


def rules_header(folder: Path) -> str:
    """Includes what families define for their shape rules: src/ops/FAMILY_rules.h."""
    names = sorted(path.name for path in folder.glob("*_rules.h"))
    return "\n".join(
        ["#pragma once", '#include "ops/rules.h"', *(f'#include "ops/{n}"' for n in names), ""]
    )


def generate(ops_folder: Path) -> dict[str, str]:
    """Path below the output folder -> text."""
    ops = autograd.add_dual_operators(table.load(ops_folder))
    known = cpp.Table(ops)
    files = {
        "include/taeda/ops.h": cpp.public_header(known),
        "include/taeda/tensor_methods.inc": cpp.methods_include(known),
        "op_rules.h": rules_header(ops_folder.parent / "src" / "ops"),
        "op_impl.h": cpp.implementation_header(known),
        "kernels_decl.h": cpp.kernels_header(known),
        "op_handlers.h": cpp.handlers_header(known),
        "_C.pyi": python.stubs(ops),
    }
    for stem, members in chunks(ops, 25).items():
        files[f"src/ops_{stem}.cc"] = cpp.source_file(members, known)
        if any(op.dispatched for op in members):
            files[f"src/autograd_{stem}.cc"] = autograd.source_file(members, known)
    methods = cpp.method_definitions(known)
    for i in range(0, len(methods), 150):
        files[f"src/methods_{i // 150}.cc"] = cpp.methods_file(methods[i : i + 150])
    files |= {
        f"loops/{name}": text for name, text in pointwise.emit(pointwise_entries(ops)).items()
    }
    files |= {f"python/{name}": text for name, text in python.binding_files(ops).items()}
    return files


def write(files: dict[str, str], out: Path) -> int:
    """Writes what changed, deletes what is no longer generated; returns how many files changed."""
    changed = 0
    for name, text in files.items():
        path = out / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            changed += 1
    for path in out.rglob("*"):
        if path.is_file() and str(path.relative_to(out)) not in files:
            path.unlink()
    return changed


def main() -> int:
    parser = argparse.ArgumentParser(prog="gen", description=__doc__)
    parser.add_argument(
        "--ops", type=Path, default=Path("ops"), help="folder of the operator table"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the generated files")
    args = parser.parse_args()
    try:
        files = generate(args.ops)
    except SchemaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"{write(files, args.out)} of {len(files)} generated files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
