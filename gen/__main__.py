"""python -m gen --ops ops --out DIR: writes everything that follows from the operator table.

Files are rewritten only when their text changed, so that a change to one entry rebuilds little.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import autograd, cpp, headers, kernels, names, operators, pointwise, python, records, table
from .op import Op
from .schema import SchemaError
from .text import cut, join_lines


def pieces(ops: list[Op]) -> dict[str, list[Op]]:
    """Operators by file stem: entries of one family and one level of optimization, some 25 a file."""
    families: dict[tuple[str, str], list[Op]] = {}
    for op in ops:
        families.setdefault((op.family, op.optimize), []).append(op)
    return {
        f"{family}_{first}": members
        for (family, _), entries in families.items()
        for first, members in cut(entries, lambda op: op.ident, 40).items()
    }


def rules_header(folder: Path) -> str:
    """Includes what families define for their shape rules: src/ops/FAMILY_rules.h."""
    names = sorted(path.name for path in folder.glob("*_rules.h"))
    return join_lines(
        "#pragma once", '#include "ops/rules.h"', *(f'#include "ops/{n}"' for n in names)
    )


def internal_operators(ops: list[Op]) -> str:
    """The operators that Python has no name for, for the tests that call them by themselves."""
    names = sorted(op.ident for op in ops if not op.python)
    return join_lines(
        "// X(NAME) for every operator without a name in Python.",
        "#pragma once",
        *(f'#include "op/{name}.h"' for name in names),
        " \\\n  ".join(["#define TD_INTERNAL_OPERATORS(X)", *(f"X({name})" for name in names)]),
    )


def generate(ops_folder: Path) -> dict[str, str]:
    """Path below the output folder -> text."""
    ops = autograd.add_dual_operators(table.load(ops_folder))
    known = cpp.Table(ops)
    known.check_definitions()
    files = {
        "include/taeda/ops.h": headers.public_header(known),
        "include/taeda/tensor_methods.inc": headers.methods_include(known),
        "op_rules.h": rules_header(ops_folder.parent / "src" / "ops"),
        "internal_operators.h": internal_operators(ops),
        "kernels_decl.h": kernels.declarations_header(ops),
        "_C.pyi": names.stubs(ops),
    }
    files["src/ops_records.cc"] = records.list_file(ops)
    small: list[str] = []
    for stem, members in pieces(ops).items():
        texts = {f"ops_{stem}.cc": operators.source_file(members, known)}
        if dispatched := [op for op in members if op.dispatched]:
            texts[f"autograd_{stem}.cc"] = autograd.source_file(dispatched, known)
        files |= {f"src/{name}": text for name, text in texts.items()}
        if members[0].optimize == "size":
            small += texts
    files["src/optimize_for_size.txt"] = join_lines(*small)
    files |= headers.method_files(known)
    files |= headers.internal_headers(known)
    files |= {f"loops/{name}": text for name, text in pointwise.emit(ops).items()}
    files |= {f"python/{name}": text for name, text in python.binding_files(known).items()}
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
