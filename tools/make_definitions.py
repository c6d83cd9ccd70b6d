"""The definitions of operators, their `expr` beside a kernel, as a module of Python functions: a
step of the build.

    make_definitions.py --out FILE.zip

The module, `taeda._decomp.defined`, lies in an archive that Python imports from: a seventh of its
size, and seldom read.

`taeda._decomp` runs them where a program asks what an operator is made of. A call of an operator
becomes ``call("NAME", ...)``, "taeda::NAME" where it is not of aten; a method becomes
``method(x, "NAME", ...)``. Both are of `taeda._decomp.language`, as are the constants and
``rules``. Of the types only those of dimensions stand there, which alone change what is read.
"""

from __future__ import annotations

import argparse
import ast
import sys
import textwrap
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from gen import records, table  # noqa: E402
from gen.cpp import Table  # noqa: E402
from gen.op import Op  # noqa: E402
from gen.schema import SchemaError  # noqa: E402
from gen.text import join_lines  # noqa: E402

HEADER = '''"""What operators of the table are made of. Made from `ops`; do not edit."""

# ruff: noqa
# mypy: ignore-errors

from .language import call, method, rules
from .language import bool8, float, inf, int, len, nan, pi
from .language import complex64, complex128, float16, float32, float64, int32, int64, uint8

'''
KEPT = {"inf", "nan", "pi", "len", "int", "float", "rules", "bool8"}
DTYPES = {"complex64", "complex128", "float16", "float32", "float64", "int32", "int64", "uint8"}


def module(table: Table) -> str:
    """The text of the module: a function for each definition, and their list by record."""
    defined = [op for op in table.ops if op.expr and op.dispatched and _is_usable(op)]
    rows = [f"    {records.full_name(op)!r}: {op.ident}," for op in defined]
    functions = [_function(op, table) for op in defined]
    return HEADER + "\n\n".join(functions) + join_lines("", "", "DEFINITIONS = {", *rows, "}")


def _is_usable(op: Op) -> bool:
    """Whether a program would compute so: no adjoint as a matrix, nothing written in place."""
    return "eye(" not in (op.expr or "") and not op.mutates


def _function(op: Op, table: Table) -> str:
    tree = ast.parse(f"def {op.ident}():\n" + textwrap.indent(op.expr or "", "    "))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    last = function.body[-1]
    if len(function.body) == 1 and isinstance(last, ast.Expr):
        function.body[-1] = ast.Return(last.value)
    dims = {a.name: ast.Constant(a.type) for a in op.sig.args if a.type.startswith("dim")}
    args = [ast.arg(a.name, dims.get(a.name)) for a in op.sig.args]
    function.args.args = args
    local = {a.name for a in op.sig.args}
    local |= {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _is_stored(n)}
    _Calls(table, local).visit(function)
    return ast.unparse(ast.fix_missing_locations(tree))


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


class _Calls(ast.NodeTransformer):
    """Makes calls of operators and methods those of the module `language`."""

    def __init__(self, table: Table, local: set[str]):
        self.table, self.local = table, local

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        args = [self.visit(a) for a in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        if isinstance(func, ast.Attribute):
            if isinstance(func.value, ast.Name) and func.value.id == "rules":
                return ast.Call(func, args, keywords)
            target = [self.visit(func.value), ast.Constant(self._record(func.attr))]
            return ast.Call(ast.Name("method", ast.Load()), target + args, keywords)
        assert isinstance(func, ast.Name)
        if func.id in KEPT:
            return ast.Call(func, args, keywords)
        name = ast.Constant(self._record(func.id))
        return ast.Call(ast.Name("call", ast.Load()), [name, *args], keywords)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        known = node.id in self.local or node.id in KEPT | DTYPES
        assert known or not isinstance(node.ctx, ast.Load), node.id
        return node

    def _record(self, name: str) -> str:
        """The name, "taeda::NAME" for what is not of aten; several have "|" between them."""
        functional = self.table.by_name.get(name) or self.table.by_name.get(name.removesuffix("_"))
        spaces = sorted({records.namespace(op) for op in functional or []})
        return name if spaces in ([], ["aten"]) else "|".join(f"{s}::{name}" for s in spaces)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the archive to write")
    args = parser.parse_args()
    try:
        text = module(Table(table.load(ROOT / "ops")))
    except SchemaError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    args.out.parent.mkdir(parents=True, exist_ok=True)
    entry = zipfile.ZipInfo("defined.py")  # of no date: the same text makes the same bytes
    with zipfile.ZipFile(args.out, "w") as archive:
        archive.writestr(entry, text, zipfile.ZIP_DEFLATED, 9)
    return 0


if __name__ == "__main__":
    sys.exit(main())
