"""The table's expression language: a subset of Python, translated to C++.

``expr:``, ``check:``, ``grad:`` and ``out:`` are written in it (docs/notes/expressions.md). The type
of a value decides what an operator symbol means (``x / y`` divides tensors elementwise and integers
exactly). Calls of table operators are resolved to one overload here, so that the C++ never depends
on overload rules. Statements are in statements.py, types and conversions in values.py.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable

from .dtypes import ENUMERATORS
from .schema import SchemaError, Signature
from .text import quoted
from .values import Value, bind, common_type, is_none, number, printable


def _by_type(**names: str) -> dict[str, str]:
    """name -> type of the result, from the names of each type."""
    return {name: kind for kind, listed in names.items() for name in listed.split()}


# methods of every tensor that are no operators
TENSOR_METADATA = _by_type(
    N="sizes strides",
    I="size stride dim numel storage_offset itemsize",
    B="is_floating_point is_complex defined requires_grad is_contiguous is_meta",
    D="dtype",
    V="device",
)
SCALAR_METHODS = _by_type(
    F="to_double", I="to_int", D="dtype", B="is_integral is_complex is_float is_bool"
)
# plain C++ functions that expressions may call, by their own names but for those of CPP_NAMES
BUILTINS = _by_type(
    B="is_floating is_integral is_complex is_inexact is_reduced_floating can_cast",
    D="to_real to_complex promote_types default_dtype result_type",
    I="item_size",
    N="broadcast",
)
CPP_NAMES = {"result_type": "rules::result_type", "broadcast": "broadcast_shapes"}
DTYPE_NAMES = {"bool8" if name == "bool" else name: k for name, k in ENUMERATORS.items()}
CONSTANTS = {
    "inf": "std::numeric_limits<double>::infinity()",
    "nan": "std::numeric_limits<double>::quiet_NaN()",
    "pi": "3.141592653589793",
}
# functions of plain numbers, where the tensor operator of that name is not meant
NUMBER_FUNCTIONS = ("abs", "sqrt", "exp", "log", "pow", "floor", "ceil", "lgamma")
CASTS = {"int": ("int64_t", "I"), "float": ("double", "F")}
# What a sign means: of tensors an operator, of numbers C++.
BINARY_OPS = {
    ast.Add: ("add", "+"),
    ast.Sub: ("sub", "-"),
    ast.Mult: ("mul", "*"),
    ast.Div: ("div", "/"),
    ast.FloorDiv: ("floor_divide", "//"),
    ast.Mod: ("remainder", "%"),
    ast.Pow: ("pow", "**"),
    ast.MatMult: ("matmul", "@"),
    ast.BitAnd: ("bitwise_and", "&"),
    ast.BitOr: ("bitwise_or", "|"),
    ast.BitXor: ("bitwise_xor", "^"),
}
COMPARE_OPS = {
    ast.Lt: ("lt", "<"),
    ast.LtE: ("le", "<="),
    ast.Gt: ("gt", ">"),
    ast.GtE: ("ge", ">="),
    ast.Eq: ("eq", "=="),
    ast.NotEq: ("ne", "!="),
}


class Translator:
    """Translates expressions over ``env`` (name -> Value); ``ops`` finds overloads by name."""

    def __init__(
        self,
        ops: Callable[[str], list[Signature]],
        where: str,
        env: dict[str, Value],
        called: set[str] | None = None,
    ):
        self.ops = ops
        self.where = where
        self.env = dict(env)
        # Takes up the operators that texts call, by the overload's identifier.
        self.called = set() if called is None else called
        # C++ of "is the gradient of this argument wanted"
        self.needs: Callable[[str], str] | None = None

    def fail(self, message: str, node: ast.AST | None = None) -> SchemaError:
        text = f" in '{ast.unparse(node)}'" if node is not None else ""
        return SchemaError(f"{self.where}: {message}{text}")

    def unknown(self, node: ast.AST) -> SchemaError:
        return self.fail(f"{type(node).__name__} is not part of the expression language", node)

    # --- entry points ---

    def expression(self, text: str) -> Value:
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise self.fail(f"cannot parse '{text}': {error.msg}") from None
        return self.visit(tree.body)

    def condition(self, text: str) -> str:
        return self.truth(self.expression(text))

    def message(self, text: str) -> str:
        """C++ arguments for a formatted message: the text with its {holes} and their values."""
        values, out, rest = [], "", text
        while "{" in rest:
            before, _, tail = rest.partition("{")
            hole, _, rest = tail.partition("}")
            out += before + "{}"
            values.append(printable(self.expression(hole)))
        return ", ".join([quoted(out + rest), *values])

    # --- expressions ---

    def visit(self, node: ast.expr) -> Value:
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            raise self.unknown(node)
        return method(node)

    def _all(self, nodes: list[ast.expr]) -> list[Value]:
        return [self.visit(node) for node in nodes]

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.env:
            return self.env[node.id]
        if node.id in DTYPE_NAMES:
            return Value(f"DType::{DTYPE_NAMES[node.id]}", "D")
        if node.id in CONSTANTS:
            return Value(CONSTANTS[node.id], "F")
        raise self.fail(f"unknown name '{node.id}'")

    def _constant(self, node: ast.Constant) -> Value:
        match node.value:
            case None:
                return Value("std::nullopt", "0")
            case bool(value):
                return Value(str(value).lower(), "B")
            case int(value):
                return Value(f"int64_t{{{value}}}", "I")
            case float(value):
                return Value(repr(value), "F")
            case str(value):
                return Value(f"std::string_view({quoted(value)})", "Y")
        raise self.fail("unsupported constant", node)

    def _list(self, node: ast.List) -> Value:
        """`[n, *tail]`: runs of elements become lists of their own, joined with what is starred."""
        values = self._all([e.value if isinstance(e, ast.Starred) else e for e in node.elts])
        starred = [isinstance(e, ast.Starred) for e in node.elts]
        kind = "L" if any(v.type in ("T", "L") for v in values) else "N"
        holder = "TensorList" if kind == "L" else "DimVector"
        if not any(starred):
            return Value(f"{holder}{{{_listed(values)}}}", kind)
        parts = []
        for is_list, run in itertools.groupby(zip(starred, values), lambda pair: pair[0]):
            run_values = [value for _, value in run]
            parts.append(_listed(run_values) if is_list else f"{holder}{{{_listed(run_values)}}}")
        return Value(f"expr::concat({', '.join(parts)})", kind)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!({self.truth(value)})", "B")
        if value.type == "T":
            name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
            return self.call_op(name, [value], {}, node)
        return Value(f"(-{number(value)})", str(value.type).removesuffix("?"))

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self.visit(node.left), self.visit(node.right)
        name, symbol = BINARY_OPS[type(node.op)]
        if "T" in (left.type, right.type):
            return self.call_op(name, [left, right], {}, node)
        if left.type == "N" and symbol in "+*":
            function = "concat" if symbol == "+" else "repeat"
            return Value(f"expr::{function}({left.cpp}, {right.cpp})", "N")
        a, b = number(left), number(right)
        if symbol == "/":
            return Value(f"(static_cast<double>({a}) / static_cast<double>({b}))", "F")
        both_int = left.type in ("I", "B", "I?") and right.type in ("I", "B", "I?")
        kind = "I" if both_int else "F"
        functions = {"//": "floor_div", "%": "modulo", "**": "power"}
        if both_int:
            functions |= {s: f"checked_{name}" for s in "+-*"}
        if symbol in functions:
            return Value(f"expr::{functions[symbol]}({a}, {b})", kind)
        return Value(f"({a} {symbol} {b})", kind)

    def _boolop(self, node: ast.BoolOp) -> Value:
        symbol = " && " if isinstance(node.op, ast.And) else " || "
        return Value("(" + symbol.join(self.truth(v) for v in self._all(node.values)) + ")", "B")

    def truth(self, value: Value) -> str:
        if value.type not in ("B", "I", "I?", "B?", "*"):
            raise self.fail(f"a value of type {value.type} has no truth value: {value.cpp}")
        return number(value)

    def _compare(self, node: ast.Compare) -> Value:
        parts, left = [], self.visit(node.left)
        for op, right_node in zip(node.ops, node.comparators):
            if isinstance(op, (ast.Is, ast.IsNot)):
                return Value(is_none(left, isinstance(op, ast.IsNot)), "B")
            if isinstance(op, (ast.In, ast.NotIn)):
                choices = self._all(right_node.elts)  # type: ignore[attr-defined]
                text = " || ".join(f"{left.cpp} == {c.cpp}" for c in choices)
                return Value(f"{'!' if isinstance(op, ast.NotIn) else ''}({text})", "B")
            right = self.visit(right_node)
            name, symbol = COMPARE_OPS[type(op)]
            kinds = (left.type, right.type)
            if "T" in kinds:
                return self.call_op(name, [left, right], {}, node)
            if "N" in kinds:
                parts.append(f"IntSpan({left.cpp}) {symbol} IntSpan({right.cpp})")
            elif "S" in kinds and symbol in ("==", "!="):
                parts.append(f"Scalar({left.cpp}) {symbol} Scalar({right.cpp})")
            else:
                parts.append(f"{number(left)} {symbol} {number(right)}")
            left = right
        return Value("(" + " && ".join(parts) + ")", "B")

    def _ifexp(self, node: ast.IfExp) -> Value:
        test = self.truth(self.visit(node.test))
        sides = self._all([node.body, node.orelse])
        wrap, kind = common_type(*sides)
        a, b = (
            "Tensor()" if v.type == "0" and kind == "T" else f"{wrap}({v.cpp})" if wrap else v.cpp
            for v in sides
        )
        return Value(f"(({test}) ? {a} : {b})", kind)

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.visit(node.value)
        match value.type, node.slice:
            case tuple(kinds), ast.Constant(int(k)):
                return Value(f"std::get<{k}>({value.cpp})", kinds[k])
            case _, ast.Slice(lower, upper):
                start = self.visit(lower).cpp if lower else "0"
                stop = self.visit(upper).cpp if upper else "expr::kEnd"
                return Value(f"expr::slice({value.cpp}, {start}, {stop})", value.type)
        item = {"N": "I", "L": "T", "Q": "F"}.get(str(value.type), "*")
        return Value(f"expr::at({value.cpp}, {self.visit(node.slice).cpp})", item)

    # --- calls ---

    def _call(self, node: ast.Call) -> Value:
        kwargs = {k.arg: self.visit(k.value) for k in node.keywords if k.arg}
        match node.func:
            case ast.Name("needs") if self.needs:
                return Value(self.needs(node.args[0].id), "B")  # type: ignore[attr-defined]
            case ast.Name("not_implemented"):  # a value that raises when it is wanted
                message = quoted(ast.literal_eval(node.args[0]))
                failing = f"fail(ErrorKind::kNotImplemented, {message})"
                return Value(f"Tensor(({failing}, Tensor()))", "T")
            case ast.Name(name):
                return self._function(name, self._all(node.args), kwargs, node)
            case ast.Attribute(ast.Name(x), name) if f"{x}__{name}" in self.env:
                return self.env[f"{x}__{name}"]  # x.sizes() of a node that keeps x's sizes
            case ast.Attribute(ast.Name("rules"), name):
                return Value(f"rules::{name}({_listed(self._all(node.args))})", "*")
            case ast.Attribute(owner, name):
                return self._method(self.visit(owner), name, self._all(node.args), kwargs, node)
        raise self.unknown(node)

    def _function(
        self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if name == "len":
            return Value(f"static_cast<int64_t>(({args[0].cpp}).size())", "I")
        if name in ("min", "max") and len(args) == 2 and all(a.type in ("I", "F") for a in args):
            cpp, kind = CASTS["float" if "F" in (args[0].type, args[1].type) else "int"]
            return Value(f"std::{name}<{cpp}>({_listed(args)})", kind)
        if name in NUMBER_FUNCTIONS and all(a.is_number for a in args):
            return Value(f"std::{name}({', '.join(number(a) for a in args)})", "F")
        if name in CASTS:
            cpp, kind = CASTS[name]
            return Value(f"static_cast<{cpp}>({number(args[0])})", kind)
        is_operator = name != "result_type" and self.ops(name) and args and args[0].type == "T"
        if name in BUILTINS and not is_operator:
            return Value(f"{CPP_NAMES.get(name, name)}({_listed(args)})", BUILTINS[name])
        return self.call_op(name, args, kwargs, node)

    def _method(
        self, target: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if target.type == "T" and name in TENSOR_METADATA:
            return Value(f"{target.cpp}.{name}({_listed(args)})", TENSOR_METADATA[name])
        if target.type == "T" and name == "to" and len(args) == 1 and args[0].type in ("D", "*"):
            self.called.add("to_dtype")
            return Value(f"op::to_dtype({target.cpp}, {args[0].cpp}, false, std::nullopt)", "T")
        if target.type == "T" and name == "item":
            return Value(f"{target.cpp}.item_scalar()", "S")
        if name == "value":
            return Value(f"({target.cpp}).value()", str(target.type).removesuffix("?"))
        if target.type == "S" and name in SCALAR_METHODS:
            return Value(f"({target.cpp}).{name}()", SCALAR_METHODS[name])
        return self.call_op(name, [target, *args], kwargs, node)

    def call_op(
        self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        """A call of the operator `name`, of the first overload that takes the arguments."""
        overloads = self.ops(name)
        if not overloads:
            raise self.fail(f"no operator called '{name}'", node)
        for sig in overloads:
            bound = bind(sig, args, kwargs)
            if bound is not None:
                self.called.add(sig.ident)
                kinds = tuple(r.base.expr for r in sig.returns)
                kind = kinds[0] if len(kinds) == 1 else kinds
                return Value(f"op::{sig.ident}({', '.join(bound)})", kind)
        got = ", ".join([str(a.type) for a in args] + [f"{k}={v.type}" for k, v in kwargs.items()])
        raise self.fail(f"no overload of '{name}' takes ({got})", node)


def _listed(values: list[Value]) -> str:
    return ", ".join(v.cpp for v in values)
