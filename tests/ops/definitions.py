"""Runs the definition of an operator, its ``expr`` in the table, as Python over taeda's operators.

The expression language is a subset of Python: the text is compiled as it stands, with method calls
turned into calls of :func:`method` and names into the table's operators. So a definition needs no
code in the library; tests/tools/test_table.py translates it, which checks its names and types.
"""

from __future__ import annotations

import ast
import functools
import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gen import records
from gen.cpp import Table
from gen.schema import Argument, Signature
from gen.table import Op, load

import taeda
from taeda import _C
from taeda._decomp import language

TABLE = Table(load(Path(__file__).resolve().parents[2] / "ops"))
BY_RECORD = {records.full_name(op): op for op in TABLE.ops}
RECORD = {op.sig.ident: name for name, op in BY_RECORD.items()}


def evaluate(op: Op, args: dict[str, Any]) -> Any:
    """The results of the definition for arguments as the kernel gets them."""
    return _compiled(op.ident)(**args)


@functools.cache
def _compiled(ident: str) -> Callable[..., Any]:
    op = BY_RECORD[RECORD[ident]]
    assert op.expr is not None
    tree = ast.parse("def definition():\n" + textwrap.indent(op.expr, "    "))
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    last = function.body[-1]
    if len(function.body) == 1 and isinstance(last, ast.Expr):
        function.body[-1] = ast.Return(last.value)
    function.args.kwonlyargs = [ast.arg(a.name) for a in op.sig.args]
    function.args.kw_defaults = [None] * len(op.sig.args)
    names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
    space = {name: _known(name) for name in names} | {"method": method}
    _Methods().visit(tree)
    exec(compile(ast.fix_missing_locations(tree), op.where, "exec"), space)
    return space["definition"]


class _Methods(ast.NodeTransformer):
    """``x.sum([0])`` becomes ``method(x, "sum", [0])``; ``rules.NAME(...)`` stays."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        func = node.func
        if not isinstance(func, ast.Attribute):
            return node
        if isinstance(func.value, ast.Name) and func.value.id == "rules":
            return node
        args = [func.value, ast.Constant(func.attr), *node.args]
        return ast.Call(ast.Name("method", ast.Load()), args, node.keywords)


CONSTANTS = {"inf": math.inf, "nan": math.nan, "pi": math.pi, "len": len, "int": int}
CONSTANTS |= {"float": float}
CONSTANTS |= {"bool8": taeda.bool}
FUNCTIONS = language.DTYPE_FUNCTIONS | {"result_type": taeda.result_type}


def _known(name: str) -> Any:
    """What a name outside the arguments stands for."""
    if name == "rules":
        return language.rules
    if name in CONSTANTS:
        return CONSTANTS[name]
    if isinstance(dtype := getattr(taeda, name, None), taeda.dtype):
        return dtype
    return functools.partial(call, name)


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    """A function of numbers or dtypes, or an operator of the table."""
    tensors = any(isinstance(a, taeda.Tensor) for a in args)
    if name in FUNCTIONS and (not tensors or name == "result_type"):
        return FUNCTIONS[name](*args)
    if name in language.NUMBER_FUNCTIONS and not tensors:
        return language.NUMBER_FUNCTIONS[name](*args)
    for sig in TABLE.overloads(name):
        bound = _bind(sig, list(args), kwargs)
        if bound is not None:
            return _operator(name, sig)(*bound[0], **bound[1])
    raise TypeError(f"no overload of {name} takes {args}, {kwargs}")


@functools.cache
def _record_of(name: str, ident: str) -> Any:
    record, overload = RECORD[ident]
    inplace = name.endswith("_") and not record.endswith("_")
    return _C._operator(record + "_" if inplace else record, overload)


def _operator(name: str, sig: Signature) -> Any:
    return _record_of(name, sig.ident)


def _bind(sig: Signature, args: list[Any], kwargs: dict[str, Any]) -> tuple[list, dict] | None:
    """Arguments by the signature, or None where they do not fit."""
    positional = [a for a in sig.args if not a.keyword_only and a.type != "options"]
    if len(args) > len(positional):
        return None
    given = dict(zip([a.name for a in positional], args))
    options = {k: v for k, v in kwargs.items() if k in ("dtype", "device")}
    takes_options = any(a.type == "options" for a in sig.args)
    given |= {k: v for k, v in kwargs.items() if not (takes_options and k in options)}
    if not set(given) <= {a.name for a in sig.args}:
        return None
    for a in sig.args:
        if a.type != "options" and a.name not in given and a.default is None:
            return None
        if a.name in given and not _fits(given[a.name], a):
            return None
    by_name = {a.name: given[a.name] for a in sig.args if a.name in given}
    lead = []
    for a in positional:
        if a.name not in by_name:
            break
        lead.append(by_name.pop(a.name))
    return lead, by_name | (options if takes_options else {})


NUMBER = (bool, int, float, complex)
KINDS: dict[str, Any] = {
    "Tensor": (taeda.Tensor, *NUMBER, type(None)),
    "Scalar": NUMBER,
    "int": int,
    "dim": int,
    "int[]": (int, list, tuple),
    "dims": (int, list, tuple),
    "float": (bool, int, float),
    "bool": bool,
    "str": str,
    "dtype": taeda.dtype,
}


def _fits(value: Any, a: Argument) -> bool:
    if value is None:
        return a.optional or a.is_tensor
    if a.is_tensor_list:
        return isinstance(value, (list, tuple))
    return isinstance(value, KINDS.get(a.type.removesuffix("?"), object))


def method(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """``target.NAME(...)``: metadata, a conversion of a number, or an operator."""
    if not isinstance(target, taeda.Tensor):
        return language.VALUE_METHODS[name](target)
    if name in language.TENSOR_METADATA and (name != "size" or args):
        return language.TENSOR_METADATA[name](target, *args)
    if name == "to" and len(args) == 1 and isinstance(args[0], taeda.dtype):
        return call("to_dtype", target, args[0])
    return call(name, target, *args, **kwargs)
