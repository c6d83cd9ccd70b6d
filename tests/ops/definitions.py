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
REAL = {taeda.complex64: taeda.float32, taeda.complex128: taeda.float64}


def is_integral(dtype: Any) -> bool:
    return not dtype.is_floating_point and not dtype.is_complex and dtype != taeda.bool


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "is_floating": lambda dtype: dtype.is_floating_point,
    "is_integral": is_integral,
    "is_complex": lambda dtype: dtype.is_complex,
    "is_inexact": lambda dtype: dtype.is_floating_point or dtype.is_complex,
    "is_reduced_floating": lambda dtype: dtype in (taeda.float16, taeda.bfloat16),
    "to_real": lambda dtype: REAL.get(dtype, dtype),
    "promote_types": taeda.promote_types,
    "result_type": taeda.result_type,
    "broadcast": lambda *sizes: list(taeda.broadcast_shapes(*sizes)),
}
NUMBER_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": min,
    "max": max,
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "floor": math.floor,
    "ceil": math.ceil,
}


def _known(name: str) -> Any:
    """What a name outside the arguments stands for."""
    if name == "rules":
        return Rules
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
    if name in NUMBER_FUNCTIONS and not tensors:
        return NUMBER_FUNCTIONS[name](*args)
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


METADATA: dict[str, Callable[..., Any]] = {
    "sizes": lambda t: list(t.shape),
    "strides": lambda t: list(t.stride()),
    "size": lambda t, d: t.size(d),
    "stride": lambda t, d: t.stride(d),
    "dim": lambda t: t.dim(),
    "numel": lambda t: t.numel(),
    "dtype": lambda t: t.dtype,
    "device": lambda t: t.device,
    "is_floating_point": lambda t: t.is_floating_point(),
    "is_complex": lambda t: t.is_complex(),
    "storage_offset": lambda t: t.storage_offset(),
    "item": lambda t: t.item(),
    "is_contiguous": lambda t: t.is_contiguous(),
}
SCALAR_METHODS: dict[str, Callable[..., Any]] = {
    "value": lambda v: v,
    "to_double": float,
    "to_int": int,
    "is_integral": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "is_float": lambda v: isinstance(v, float),
    "is_complex": lambda v: isinstance(v, complex),
    "is_bool": lambda v: isinstance(v, bool),
}


def method(target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """``target.NAME(...)``: metadata, a conversion of a number, or an operator."""
    if not isinstance(target, taeda.Tensor):
        return SCALAR_METHODS[name](target)
    if name in METADATA and (name != "size" or args):
        return METADATA[name](target, *args)
    if name == "to" and len(args) == 1 and isinstance(args[0], taeda.dtype):
        return call("to_dtype", target, args[0])
    return call(name, target, *args, **kwargs)


class Rules:
    """What definitions use of rules.NAME (src/ops/*_rules.h)."""

    @staticmethod
    def trailing_dims(count: int) -> list[int]:
        return list(range(-count, 0))

    @staticmethod
    def all_but_channel(ndim: int) -> list[int]:
        return [d for d in range(ndim) if d != 1]

    @staticmethod
    def channel_shape(ndim: int, channels: int) -> list[int]:
        return [1, channels, *[1] * (ndim - 2)]

    @staticmethod
    def product(values: list[int]) -> int:
        return math.prod(values)

    @staticmethod
    def window_size(kernel: list[int], spatial: int) -> int:
        return math.prod(kernel if len(kernel) == spatial else kernel * spatial)

    @staticmethod
    def reduced(sizes: list[int], dims: list[int] | None, keepdim: bool) -> list[int]:
        gone = {d % len(sizes) for d in dims} if dims and sizes else set(range(len(sizes)))
        kept = [1 if d in gone else n for d, n in enumerate(sizes)]
        return kept if keepdim else [n for d, n in enumerate(sizes) if d not in gone]

    @staticmethod
    def sum_dtype(own: Any, given: Any) -> Any:
        counted = taeda.int64 if is_integral(own) or own == taeda.bool else own
        return counted if given is None else given

    @staticmethod
    def pooled(
        name: str,
        sizes: list[int],
        spatial: int,
        kernel: list[int],
        stride: list[int],
        padding: list[int],
        dilation: list[int],
        ceil_mode: bool,
    ) -> list[int]:
        out = list(sizes[:-spatial])
        for i, size in enumerate(sizes[-spatial:]):
            k, p, d = (v[min(i, len(v) - 1)] for v in (kernel, padding, dilation))
            step = stride[min(i, len(stride) - 1)] if stride else k
            room = size + 2 * p - d * (k - 1) - 1
            windows = (room + step - 1 if ceil_mode else room) // step + 1
            if ceil_mode and (windows - 1) * step >= size + p:
                windows -= 1  # a window begins inside the tensor or the padding before it
            out.append(windows)
        return out
