"""python -m gen --ops ops --out DIR: writes everything that follows from the operator table.

Files are rewritten only when their text changed, so that a change to one entry rebuilds little.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import autograd, cpp, headers, operators, pointwise, python, records, table
from .op import Op
from .schema import SchemaError
from .text import cut, join_lines, macro


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


def generate(ops_folder: Path) -> dict[str, str]:
    """Path below the output folder -> text."""
    ops = autograd.add_dual_operators(table.load(ops_folder))
    known = cpp.Table(ops)
    files = {
        "include/taeda/ops.h": headers.public_header(known),
        "include/taeda/foreach.inc": headers.foreach_lines(known),
        "internal_operators.h": join_lines(
            "// X(NAME) for every operator without a name in Python, for the tests that call each.",
            macro("TD_INTERNAL_OPERATORS", sorted(f"X({op.ident})" for op in ops if not op.python)),
        ),
        "src/ops_records.cc": records.list_file(ops),
    }
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


def write(files: dict[str, str], out: Path) -> None:
    """Writes what changed, deletes what is no longer generated."""
    for name, text in files.items():
        path = out / name
        if not path.exists() or path.read_text() != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for path in out.rglob("*"):
        if path.is_file() and str(path.relative_to(out)) not in files:
            path.unlink()


def main() -> int:
    parser = argparse.ArgumentParser(prog="gen", description=__doc__)
    parser.add_argument("--ops", type=Path, default="ops", help="folder of the operator table")
    parser.add_argument("--out", type=Path, required=True, help="folder for the generated files")
    args = parser.parse_args()
    try:
        write(generate(args.ops), args.out)
    except (SchemaError, table.yaml.YAMLError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
