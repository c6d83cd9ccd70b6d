"""The table's expression language: a subset of Python, translated to C++.

``expr:``, ``check:``, ``grad:`` and ``out:`` are written in it (docs/notes/expressions.md). The type
of a value decides what an operator symbol means (``x / y`` divides tensors elementwise and integers
exactly). Calls of table operators are resolved to one overload here, so that the C++ never depends
on overload rules. Statements are in cpp.py, types and conversions in values.py.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from .schema import SchemaError, Signature
from .text import quoted
from .values import LOCAL_TYPES, OWNERS, Args, Named, Value, bind, common_type, plain


def _by_type(**names: str) -> dict[str, str]:
    """name -> type of the result, from the names of each type."""
    return {name: kind for kind, listed in names.items() for name in listed.split()}


# methods of every tensor that are no operators, and those of Scalars
TENSOR_METADATA = _by_type(
    N="sizes strides",
    I="size stride dim numel storage_offset itemsize",
    B="is_floating_point is_complex is_sparse is_conj is_neg defined requires_grad is_contiguous "
    "is_meta",
    D="dtype",
    V="device",
    S="item",
)
SCALAR_METHODS = _by_type(
    F="to_double", I="to_int", D="dtype", B="is_integral is_complex is_float is_bool"
)
# plain C++ functions that expressions may call, where the operator of that name is not meant
NUMBER_FUNCTIONS = "abs sqrt exp log pow floor ceil lgamma"
BUILTINS = _by_type(
    B="is_floating is_integral is_complex is_inexact is_reduced_floating is_storage_type can_cast",
    D="to_real to_complex promote_types default_dtype result_type",
    I="item_size len int",
    N="broadcast",
    F=f"float {NUMBER_FUNCTIONS}",
)
# what C++ calls them, where that is another name
CPP_NAMES = {name: f"std::{name}" for name in NUMBER_FUNCTIONS.split()} | {
    "result_type": "rules::result_type",
    "broadcast": "broadcast_shapes",
    "item": "item_scalar",
    "len": "expr::len",
    "int": "static_cast<int64_t>",
    "float": "static_cast<double>",
}
# constants of C++ (ops/expr.h), dtypes by the form of their names
CONSTANTS = {"inf": "F", "nan": "F", "pi": "F"}
DTYPE = re.compile(r"(bool|u?int|b?float|complex)\d+")
# The operators that signs are; of numbers and lists the C++ function of that name (ops/expr.h).
BINARY_OPS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.MatMult: "matmul",
    ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor",
}  # fmt: skip
COMPARE_OPS = {
    ast.Lt: ("lt", "<"), ast.LtE: ("le", "<="), ast.Gt: ("gt", ">"), ast.GtE: ("ge", ">="),
    ast.Eq: ("eq", "=="), ast.NotEq: ("ne", "!="),
}  # fmt: skip


@dataclass
class Translator(ast.NodeVisitor):
    """Translates expressions over ``env`` (name -> Value); ``ops`` finds overloads by name."""

    ops: Callable[[str], list[Signature]]
    where: str
    env: dict[str, Value]
    # takes up the operators that texts call, by the overload's identifier
    called: set[str] = field(default_factory=set)
    # C++ of "is the gradient of this argument wanted"
    needs: Callable[[str], str] | None = None

    def fail(self, message: str, node: ast.AST | None = None) -> SchemaError:
        text = f" in '{ast.unparse(node)}'" if node is not None else ""
        return SchemaError(f"{self.where}: {message}{text}")

    def unknown(self, node: ast.AST) -> SchemaError:
        return self.fail(f"{type(node).__name__} is not part of the expression language", node)

    def generic_visit(self, node: ast.AST) -> Value:
        raise self.unknown(node)

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
        values = [plain(self.expression(hole)) for hole in re.findall(r"\{(.*?)\}", text)]
        return ", ".join([quoted(re.sub(r"\{.*?\}", "{}", text)), *values])

    # --- expressions ---

    def _all(self, nodes: list[ast.expr]) -> list[Value]:
        return [self.visit(node) for node in nodes]

    def visit_Name(self, node: ast.Name) -> Value:
        if node.id in self.env:
            return self.env[node.id]
        if kind := CONSTANTS.get(node.id, "D" if DTYPE.fullmatch(node.id) else ""):
            return Value(f"expr::{node.id}", kind)
        raise self.fail(f"unknown name '{node.id}'")

    def visit_Constant(self, node: ast.Constant) -> Value:
        match node.value:
            case None:
                return Value("expr::kNone", "0")
            case bool(value):
                return Value(str(value).lower(), "B")
            case int(value):
                return Value(f"int64_t{{{value}}}", "I")
            case float(value):
                return Value(repr(value), "F")
            case str(value):
                return Value(f"{quoted(value)}sv", "Y")
        raise self.fail("unsupported constant", node)

    def visit_List(self, node: ast.List) -> Value:
        values = self._all([e.value if isinstance(e, ast.Starred) else e for e in node.elts])
        if any(isinstance(e, ast.Starred) for e in node.elts):
            return Value(f"expr::joined({_listed(values)})", "N")
        kind = "L" if any(v.type in ("T", "L") for v in values) else "N"
        return Value(f"{OWNERS[kind]}{{{_listed(values)}}}", kind)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!({self.truth(value)})", "B")
        if value.type == "T":
            name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
            return self.call_op(name, [value], {}, node)
        return Value(f"(-{plain(value)})", str(value.type).removesuffix("?"))

    def visit_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.visit(node.left), self.visit(node.right)
        name = BINARY_OPS[type(node.op)]
        if "T" in (left.type, right.type):
            return self.call_op(name, [left, right], {}, node)
        integers = {left.type, right.type} <= {"I", "B", "I?"} and name != "div"
        kind = "N" if left.type == "N" else "I" if integers else "F"
        return Value(f"expr::{name}({plain(left)}, {plain(right)})", kind)

    def visit_BoolOp(self, node: ast.BoolOp) -> Value:
        symbol = " && " if isinstance(node.op, ast.And) else " || "
        return Value("(" + symbol.join(self.truth(v) for v in self._all(node.values)) + ")", "B")

    def truth(self, value: Value) -> str:
        if value.type not in ("B", "I", "I?", "B?", "*"):
            raise self.fail(f"a value of type {value.type} has no truth value: {value.cpp}")
        return plain(value)

    def visit_Compare(self, node: ast.Compare) -> Value:
        parts, left = [], self.visit(node.left)
        for op, right_node in zip(node.ops, node.comparators):
            if isinstance(op, (ast.Is, ast.IsNot)):
                negation = "!" if isinstance(op, ast.Is) else ""
                return Value(f"{negation}expr::given({left.cpp})", "B")
            if isinstance(op, (ast.In, ast.NotIn)):
                choices = self._all(right_node.elts)  # type: ignore[attr-defined]
                text = " || ".join(f"{left.cpp} == {c.cpp}" for c in choices)
                return Value(f"{'!' if isinstance(op, ast.NotIn) else ''}({text})", "B")
            right = self.visit(right_node)
            name, symbol = COMPARE_OPS[type(op)]
            if "T" in (left.type, right.type):
                return self.call_op(name, [left, right], {}, node)
            parts.append(f"{plain(left)} {symbol} {plain(right)}")
            left = right
        return Value("(" + " && ".join(parts) + ")", "B")

    def visit_IfExp(self, node: ast.IfExp) -> Value:
        test = self.truth(self.visit(node.test))
        sides = self._all([node.body, node.orelse])
        wrap, kind = common_type(*sides)
        a, b = (f"{wrap}({v.cpp})" for v in sides)
        return Value(f"(({test}) ? {a} : {b})", kind)

    def visit_Subscript(self, node: ast.Subscript) -> Value:
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

    def visit_Call(self, node: ast.Call) -> Value:
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

    def _function(self, name: str, args: Args, kwargs: Named, node: ast.AST) -> Value:
        if name in ("min", "max") and len(args) == 2 and all(a.type in ("I", "F") for a in args):
            kind = "F" if "F" in (args[0].type, args[1].type) else "I"
            return Value(f"std::{name}<{LOCAL_TYPES[kind]}>({_listed(args)})", kind)
        is_operator = any(a.type == "T" for a in args) and name != "result_type" and self.ops(name)
        if name in BUILTINS and not is_operator:
            given = ", ".join(map(plain, args))
            return Value(f"{CPP_NAMES.get(name, name)}({given})", BUILTINS[name])
        return self.call_op(name, args, kwargs, node)

    def _method(self, target: Value, name: str, args: Args, kwargs: Named, node: ast.AST) -> Value:
        known = {"T": TENSOR_METADATA, "S": SCALAR_METHODS}.get(str(target.type), {})
        if name in known:
            call = f"{target.cpp}.{CPP_NAMES.get(name, name)}({_listed(args)})"
            return Value(call, known[name])
        if name == "value":
            return Value(f"({target.cpp}).value()", str(target.type).removesuffix("?"))
        if name == "to" and len(args) == 1 and args[0].type in ("D", "*"):
            return self.call_op("to_dtype", [target, *args], {}, node)
        return self.call_op(name, [target, *args], kwargs, node)

    def call_op(self, name: str, args: Args, kwargs: Named, node: ast.AST) -> Value:
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
