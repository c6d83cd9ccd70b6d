"""The table's expression language: a subset of Python, translated to C++.

``expr:``, ``check:``, ``grad:`` and ``out:`` are written in it. A value is a :class:`Value`: C++
text and a type, which decides what an operator symbol means (``x / y`` divides tensors elementwise
and integers exactly). Calls of table operators are resolved to one overload here, so that the C++
never depends on overload rules.

Types: T tensor, L list of tensors, I int, F float, B bool, S Scalar, N list of ints, Q list of
floats, Y str, D dtype, V device, G generator, M memory format, 0 None; "X?" optional; a tuple of
types for several results; "*" unknown.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from .schema import Argument, SchemaError, Signature

TYPE_OF = {
    "Tensor": "T",
    "Tensor?": "T",
    "Tensor[]": "L",
    "Tensor?[]": "L",
    "Scalar": "S",
    "int": "I",
    "dim": "I",
    "int[]": "N",
    "dims": "N",
    "float": "F",
    "float[]": "Q",
    "bool": "B",
    "str": "Y",
    "dtype": "D",
    "device": "V",
    "Generator?": "G",
    "memory_format": "M",
    "options": "O",
}


def type_of(schema_type: str) -> str:
    if schema_type in TYPE_OF:
        return TYPE_OF[schema_type]
    return TYPE_OF[schema_type.removesuffix("?")] + "?"


@dataclass
class Value:
    cpp: str
    type: str | tuple[str, ...]


# methods of every tensor that are no operators: name -> (type of the result)
TENSOR_FACTS = {
    "sizes": "N",
    "strides": "N",
    "size": "I",
    "stride": "I",
    "dim": "I",
    "numel": "I",
    "dtype": "D",
    "device": "V",
    "is_floating_point": "B",
    "is_complex": "B",
    "defined": "B",
    "requires_grad": "B",
    "storage_offset": "I",
    "itemsize": "I",
    "is_contiguous": "B",
    "is_meta": "B",
}
DTYPE_NAMES = {
    "bool8": "kBool",
    "uint8": "kUInt8",
    "int8": "kInt8",
    "int16": "kInt16",
    "int32": "kInt32",
    "int64": "kInt64",
    "float16": "kFloat16",
    "bfloat16": "kBFloat16",
    "float32": "kFloat32",
    "float64": "kFloat64",
    "complex64": "kComplex64",
    "complex128": "kComplex128",
}
# plain C++ functions that expressions may call: name -> (C++ name, type of the result)
BUILTINS = {
    "is_floating": ("is_floating", "B"),
    "is_integral": ("is_integral", "B"),
    "is_complex": ("is_complex", "B"),
    "is_inexact": ("is_inexact", "B"),
    "is_reduced_floating": ("is_reduced_floating", "B"),
    "to_real": ("to_real", "D"),
    "to_complex": ("to_complex", "D"),
    "promote_types": ("promote_types", "D"),
    "default_dtype": ("default_dtype", "D"),
    "item_size": ("item_size", "I"),
    "can_cast": ("can_cast", "B"),
    "result_type": ("rules::result_type", "D"),
    "broadcast": ("broadcast_shapes", "N"),
}
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
ERRORS = {
    "RuntimeError": "kRuntime",
    "ValueError": "kValue",
    "IndexError": "kIndex",
    "TypeError": "kType",
    "NotImplementedError": "kNotImplemented",
}
LOCAL_TYPES: dict[str | tuple[str, ...], str] = {
    "I": "int64_t",
    "F": "double",
    "B": "bool",
    "T": "Tensor",
    "N": "DimVector",
    "L": "TensorList",
    "S": "Scalar",
    "D": "DType",
}
NUMBERS = "IFBS"
# functions of plain numbers, where the tensor operator of that name is not meant
NUMBER_FUNCTIONS = {
    "abs": "abs",
    "sqrt": "sqrt",
    "exp": "exp",
    "log": "log",
    "pow": "pow",
    "floor": "floor",
    "ceil": "ceil",
    "lgamma": "lgamma",
}


class Translator:
    """Translates expressions over ``env`` (name -> Value); ``ops`` finds overloads by name."""

    def __init__(self, ops: Callable[[str], list[Signature]], where: str, env: dict[str, Value]):
        self.ops = ops
        self.where = where
        self.env = dict(env)
        self.tree: ast.AST = ast.Module([], [])
        self.first_values: dict[str, str] = {}
        self.hoisted: set[str] = (
            set()
        )  # locals first assigned inside an `if`, declared in front of it
        self.needs: Callable[[str], str] | None = (
            None  # C++ of "is the gradient of this argument wanted"
        )

    def fail(self, message: str, node: ast.AST | None = None) -> SchemaError:
        text = f" in '{ast.unparse(node)}'" if node is not None else ""
        return SchemaError(f"{self.where}: {message}{text}")

    # --- entry points ---

    def expression(self, text: str) -> Value:
        try:
            tree = ast.parse(text.strip(), mode="eval")
        except SyntaxError as error:
            raise SchemaError(f"{self.where}: cannot parse '{text}': {error.msg}") from None
        return self.visit(tree.body)

    def condition(self, text: str) -> str:
        return self._truth(self.expression(text))

    def message(self, text: str) -> str:
        """C++ arguments for a formatted message: the text with its {holes} and their values."""
        values, out, rest = [], "", text
        while "{" in rest:
            before, _, tail = rest.partition("{")
            hole, _, rest = tail.partition("}")
            value = self.expression(hole)
            out += before + "{}"
            values.append(self._printable(value))
        return ", ".join([_quote(out + rest), *values])

    def body(self, text: str, returns: list[str]) -> str:
        """A function body: statements ending in return; ``returns`` are the results' C++ types."""
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise SchemaError(f"{self.where}: line {error.lineno} of expr: {error.msg}") from None
        if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
            tree.body[0] = ast.Return(tree.body[0].value)
        self.returns = returns
        self.tree = tree
        lines = []
        for name in sorted(
            _assigned(tree) & set(self.env)
        ):  # an argument that is assigned becomes a local copy
            value = self.env[name]
            local = f"{name}_var"
            lines.append(f"{LOCAL_TYPES.get(value.type, 'auto')} {local} = {value.cpp};")
            self.env[name] = Value(local, value.type)
        for statement in tree.body:
            lines += self._statement(statement)
        return "\n".join("  " + line for line in lines)

    # --- statements ---

    def _statement(self, node: ast.stmt) -> list[str]:
        if isinstance(node, ast.Return):
            return [f"return {self._returned(node.value)};"]
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            return self._assign(node.targets[0], self.visit(node.value))
        if isinstance(node, ast.AugAssign):
            return self._assign(
                node.target,
                self._binary(node.op, self.visit(node.target), self.visit(node.value), node),
            )
        if isinstance(node, ast.If):
            inside = set(ast.walk(node))
            outside = {
                n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name) and n not in inside
            }
            hoisted = sorted((_assigned(node) & outside) - set(self.env))
            self.hoisted |= set(hoisted)
            lines = [f"if ({self._truth(self.visit(node.test))}) {{"]
            lines += ["  " + line for s in node.body for line in self._statement(s)]
            if node.orelse:
                lines += ["} else {"] + [
                    "  " + line for s in node.orelse for line in self._statement(s)
                ]
            self.hoisted -= set(hoisted)
            declarations = [f"{self._local_type(n)} {n}_{{}};" for n in hoisted]
            return [*declarations, *lines, "}"]
        if (
            isinstance(node, ast.Raise)
            and isinstance(node.exc, ast.Call)
            and isinstance(node.exc.func, ast.Name)
        ):
            kind = ERRORS[node.exc.func.id]
            return [f"fail(ErrorKind::{kind}, {self.message(ast.literal_eval(node.exc.args[0]))});"]
        if isinstance(node, ast.Expr):
            return [self.visit(node.value).cpp + ";"]
        raise self.fail(f"{type(node).__name__} is not part of the expression language", node)

    def _local_type(self, name: str) -> str:
        """The C++ type of a hoisted local."""
        kind = self.env[name].type
        return (
            LOCAL_TYPES[kind]
            if kind in LOCAL_TYPES
            else f"std::decay_t<decltype({self.first_values[name]})>"
        )

    def _assign(self, target: ast.expr, value: Value) -> list[str]:
        if isinstance(target, ast.Tuple):
            names = [t.id for t in target.elts]  # type: ignore[attr-defined]
            if not isinstance(value.type, tuple):
                raise self.fail("several targets need an operator with several results", target)
            fresh = [f"{n}_" for n in names]
            lines = [f"auto [{', '.join(fresh)}] = {value.cpp};"]
            for name, local, kind in zip(names, fresh, value.type):
                self.env[name] = Value(local, kind)
            return lines
        name = target.id  # type: ignore[attr-defined]
        if name in self.env and self.env[name].cpp.endswith(("_var", "_")):
            return [f"{self.env[name].cpp} = {self._coerced(value, self.env[name].type)};"]
        self.env[name] = Value(f"{name}_", value.type)
        if name in self.hoisted:
            self.first_values[name] = value.cpp
            return [f"{name}_ = {value.cpp};"]
        return [f"{LOCAL_TYPES.get(value.type, 'auto')} {name}_ = {value.cpp};"]

    def _coerced(self, value: Value, kind: str | tuple[str, ...]) -> str:
        return f"Tensor({value.cpp})" if kind == "T" and value.type != "T" else value.cpp

    def _returned(self, node: ast.expr | None) -> str:
        if isinstance(node, ast.Tuple):
            parts = [self._as(self.visit(e), t) for e, t in zip(node.elts, self.returns)]
            return "{" + ", ".join(parts) + "}"
        assert node is not None
        return (
            self._as(self.visit(node), self.returns[0])
            if len(self.returns) == 1
            else self.visit(node).cpp
        )

    def _as(self, value: Value, ctype: str) -> str:
        if ctype == "Tensor" and value.type == "0":
            return "Tensor()"
        if ctype == "Tensor" and value.type in tuple(NUMBERS):
            return f"Tensor({value.cpp})"
        return value.cpp

    # --- expressions ---

    def visit(self, node: ast.expr) -> Value:
        method = getattr(self, "_" + type(node).__name__.lower(), None)
        if method is None:
            raise self.fail(f"{type(node).__name__} is not part of the expression language", node)
        return method(node)

    def _name(self, node: ast.Name) -> Value:
        if node.id in self.env:
            return self.env[node.id]
        if node.id in DTYPE_NAMES:
            return Value(f"DType::{DTYPE_NAMES[node.id]}", "D")
        if node.id == "inf":
            return Value("std::numeric_limits<double>::infinity()", "F")
        if node.id == "nan":
            return Value("std::numeric_limits<double>::quiet_NaN()", "F")
        if node.id == "pi":
            return Value("3.141592653589793", "F")
        raise self.fail(f"unknown name '{node.id}'")

    def _constant(self, node: ast.Constant) -> Value:
        value = node.value
        if value is None:
            return Value("std::nullopt", "0")
        if isinstance(value, bool):
            return Value("true" if value else "false", "B")
        if isinstance(value, int):
            return Value(f"int64_t{{{value}}}", "I")
        if isinstance(value, float):
            return Value(repr(value), "F")
        if isinstance(value, str):
            return Value(f"std::string_view({_quote(value)})", "Y")
        raise self.fail("unsupported constant", node)

    def _list(self, node: ast.List) -> Value:
        pieces: list[str] = []
        kind = "N"
        run: list[str] = []
        for element in node.elts:
            starred = isinstance(element, ast.Starred)
            value = self.visit(element.value if isinstance(element, ast.Starred) else element)
            if value.type in ("T", "L"):
                kind = "L"
            if starred:
                if run:
                    pieces.append(", ".join(run))
                    run = []
                pieces.append("*" + value.cpp)
            else:
                run.append(value.cpp)
        holder = "TensorList" if kind == "L" else "DimVector"
        if run or not pieces:
            pieces.append(", ".join(run))
        if len(pieces) == 1 and not pieces[0].startswith("*"):
            return Value(f"{holder}{{{pieces[0]}}}", kind)
        parts = [p[1:] if p.startswith("*") else f"{holder}{{{p}}}" for p in pieces]
        return Value(f"expr::concat({', '.join(parts)})", kind)

    def _tuple(self, node: ast.Tuple) -> Value:
        values = [self.visit(e) for e in node.elts]
        kinds = tuple("T" if v.type == "0" else str(v.type) for v in values)
        parts = ["Tensor()" if v.type == "0" else v.cpp for v in values]
        return Value(f"std::make_tuple({', '.join(parts)})", kinds)

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(f"!({self._truth(value)})", "B")
        if value.type == "T":
            name = "neg" if isinstance(node.op, ast.USub) else "bitwise_not"
            return self._call_op(name, [value], {}, node)
        return Value(f"(-{self._number(value)})", value.type.removesuffix("?"))  # type: ignore[union-attr]

    def _binop(self, node: ast.BinOp) -> Value:
        return self._binary(node.op, self.visit(node.left), self.visit(node.right), node)

    def _binary(self, op: ast.operator, left: Value, right: Value, node: ast.AST) -> Value:
        name, symbol = BINARY_OPS[type(op)]
        if "T" in (left.type, right.type):
            return self._call_op(name, [left, right], {}, node)
        if left.type == "N" and symbol == "+":
            return Value(f"expr::concat({left.cpp}, {right.cpp})", "N")
        if left.type == "N" and symbol == "*":
            return Value(f"expr::repeat({left.cpp}, {right.cpp})", "N")
        a, b = self._number(left), self._number(right)
        both_int = left.type in ("I", "B", "I?") and right.type in ("I", "B", "I?")
        kind = "I" if both_int else "F"
        if symbol == "/":
            return Value(f"(static_cast<double>({a}) / static_cast<double>({b}))", "F")
        if symbol == "//":
            return Value(f"expr::floor_div({a}, {b})", kind)
        if symbol == "%":
            return Value(f"expr::modulo({a}, {b})", kind)
        if symbol == "**":
            return Value(f"expr::power({a}, {b})", kind)
        if both_int and symbol in "+-*":
            return Value(f"expr::checked_{name}({a}, {b})", "I")
        return Value(f"({a} {symbol} {b})", kind)

    def _number(self, value: Value) -> str:
        if value.type == "S":
            return f"({value.cpp}).to_double()"
        if value.type == "S?":
            return f"({value.cpp}).value().to_double()"
        if isinstance(value.type, str) and value.type.endswith("?"):
            return f"({value.cpp}).value()"
        return value.cpp

    def _boolop(self, node: ast.BoolOp) -> Value:
        symbol = " && " if isinstance(node.op, ast.And) else " || "
        return Value("(" + symbol.join(self._truth(self.visit(v)) for v in node.values) + ")", "B")

    def _truth(self, value: Value) -> str:
        if value.type in ("N", "L", "Q", "Y"):
            return f"!({value.cpp}).empty()"
        if value.type == "S":
            return f"({value.cpp}).to_bool()"
        if value.type == "T":
            raise self.fail(f"a tensor has no truth value here: {value.cpp}")
        return (
            self._number(value)
            if isinstance(value.type, str) and value.type.endswith("?")
            else value.cpp
        )

    def _compare(self, node: ast.Compare) -> Value:
        parts, left = [], self.visit(node.left)
        for op, right_node in zip(node.ops, node.comparators):
            if isinstance(op, (ast.Is, ast.IsNot)):
                return Value(self._is_none(left, isinstance(op, ast.IsNot)), "B")
            if isinstance(op, (ast.In, ast.NotIn)):
                choices = [self.visit(e) for e in right_node.elts]  # type: ignore[attr-defined]
                text = " || ".join(f"{left.cpp} == {c.cpp}" for c in choices)
                return Value(f"!({text})" if isinstance(op, ast.NotIn) else f"({text})", "B")
            right = self.visit(right_node)
            name, symbol = COMPARE_OPS[type(op)]
            if "T" in (left.type, right.type):
                return self._call_op(name, [left, right], {}, node)
            if "N" in (left.type, right.type):
                parts.append(f"IntSpan({left.cpp}) {symbol} IntSpan({right.cpp})")
            elif "S" in (left.type, right.type) and symbol in ("==", "!="):
                parts.append(f"Scalar({left.cpp}) {symbol} Scalar({right.cpp})")
            else:
                parts.append(f"{self._number(left)} {symbol} {self._number(right)}")
            left = right
        return Value("(" + " && ".join(parts) + ")", "B")

    def _is_none(self, value: Value, negated: bool) -> str:
        if value.type == "T":
            return f"{'' if negated else '!'}{value.cpp}.defined()"
        if value.type == "G":
            return f"({value.cpp} {'!=' if negated else '=='} nullptr)"
        return f"{'' if negated else '!'}{value.cpp}.has_value()"

    def _ifexp(self, node: ast.IfExp) -> Value:
        test = self._truth(self.visit(node.test))
        a, b = self.visit(node.body), self.visit(node.orelse)
        wrap, kind = "", a.type if b.type == "0" else b.type
        kinds = {a.type, b.type}
        if "T" in kinds:
            wrap, kind = "Tensor", "T"
        elif "0" in kinds:
            kind = next(k for k in (a.type, b.type) if k != "0")
            wrap = {
                "N": "std::optional<DimVector>",
                "I": "OptInt",
                "D": "OptDType",
                "F": "OptDouble",
            }.get(str(kind), "")
            kind = f"{kind}?" if not str(kind).endswith("?") else kind
        elif "N" in kinds:
            wrap, kind = "DimVector", "N"
        elif "L" in kinds:
            wrap, kind = "TensorList", "L"
        elif kinds == {"I"}:
            wrap, kind = "int64_t", "I"
        elif kinds <= {"I", "F", "S"} and len(kinds) > 1:
            wrap, kind = ("Scalar", "S") if "S" in kinds else ("double", "F")

        def side(v: Value) -> str:
            if v.type == "0" and wrap == "Tensor":
                return "Tensor()"
            return f"{wrap}({v.cpp})" if wrap else v.cpp

        return Value(f"(({test}) ? {side(a)} : {side(b)})", kind)

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.visit(node.value)
        index = node.slice
        if isinstance(value.type, tuple):
            k = ast.literal_eval(index)
            return Value(f"std::get<{k}>({value.cpp})", value.type[k])
        if isinstance(index, ast.Slice):
            start = self.visit(index.lower).cpp if index.lower else "0"
            stop = self.visit(index.upper).cpp if index.upper else "expr::kEnd"
            return Value(f"expr::slice({value.cpp}, {start}, {stop})", value.type)
        item = {"N": "I", "L": "T", "Q": "F"}.get(str(value.type), "*")
        return Value(f"expr::at({value.cpp}, {self.visit(index).cpp})", item)

    # --- calls ---

    def _call(self, node: ast.Call) -> Value:
        kwargs = {k.arg: self.visit(k.value) for k in node.keywords if k.arg}
        if isinstance(node.func, ast.Attribute):
            if isinstance(node.func.value, ast.Name) and node.func.value.id == "rules":
                args = [self.visit(a) for a in node.args]
                return Value(f"rules::{node.func.attr}({', '.join(a.cpp for a in args)})", "*")
            target = self.visit(node.func.value)
            args = [self.visit(a) for a in node.args]
            return self._method(target, node.func.attr, args, kwargs, node)
        name = node.func.id  # type: ignore[attr-defined]
        if name == "needs" and self.needs:
            return Value(self.needs(node.args[0].id), "B")  # type: ignore[attr-defined]
        args = [self.visit(a) for a in node.args]
        if name == "not_implemented":  # a value that raises when it is wanted
            text = ast.literal_eval(node.args[0])
            return Value(
                f"Tensor((fail(ErrorKind::kNotImplemented, {_quote(text)}), Tensor()))", "T"
            )
        if name == "len":
            return Value(f"static_cast<int64_t>(({args[0].cpp}).size())", "I")
        if name in ("min", "max") and all(a.type in ("I", "F") for a in args) and len(args) == 2:
            kind = "F" if "F" in (args[0].type, args[1].type) else "I"
            ctype = "double" if kind == "F" else "int64_t"
            return Value(f"std::{name}<{ctype}>({args[0].cpp}, {args[1].cpp})", kind)
        if name in NUMBER_FUNCTIONS and all(str(a.type) in tuple(NUMBERS) for a in args):
            return Value(
                f"std::{NUMBER_FUNCTIONS[name]}({', '.join(self._number(a) for a in args)})", "F"
            )
        if name == "int":
            return Value(f"static_cast<int64_t>({self._number(args[0])})", "I")
        if name == "float":
            return Value(f"static_cast<double>({self._number(args[0])})", "F")
        if name in BUILTINS and not self._is_tensor_call(name, args):
            cpp, kind = BUILTINS[name]
            return Value(f"{cpp}({', '.join(a.cpp for a in args)})", kind)
        return self._call_op(name, args, kwargs, node)

    def _is_tensor_call(self, name: str, args: list[Value]) -> bool:
        return (
            bool(args)
            and args[0].type == "T"
            and bool(self.ops(name))
            and name not in ("result_type",)
        )

    def _method(
        self, target: Value, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        if target.type == "T" and name in TENSOR_FACTS:
            return Value(
                f"{target.cpp}.{name}({', '.join(a.cpp for a in args)})", TENSOR_FACTS[name]
            )
        if target.type == "T" and name == "to" and len(args) == 1 and args[0].type in ("D", "*"):
            return Value(f"op::to_dtype({target.cpp}, {args[0].cpp}, false, std::nullopt)", "T")
        if target.type == "T" and name == "item":
            return Value(f"{target.cpp}.item_scalar()", "S")
        if name == "value":
            return Value(f"({target.cpp}).value()", str(target.type).removesuffix("?"))
        if target.type == "S" and name in (
            "to_double",
            "to_int",
            "is_integral",
            "is_complex",
            "is_float",
            "is_bool",
            "dtype",
        ):
            kind = {"to_double": "F", "to_int": "I", "dtype": "D"}.get(name, "B")
            return Value(f"({target.cpp}).{name}()", kind)
        return self._call_op(name, [target, *args], kwargs, node)

    def _call_op(
        self, name: str, args: list[Value], kwargs: dict[str, Value], node: ast.AST
    ) -> Value:
        overloads = self.ops(name)
        if not overloads:
            raise self.fail(f"no operator called '{name}'", node)
        for sig in overloads:
            bound = self._bind(sig, args, kwargs)
            if bound is not None:
                kinds = tuple(type_of(r.type) for r in sig.returns)
                return Value(
                    f"op::{sig.ident}({', '.join(bound)})", kinds[0] if len(kinds) == 1 else kinds
                )
        got = ", ".join([str(a.type) for a in args] + [f"{k}={v.type}" for k, v in kwargs.items()])
        raise self.fail(f"no overload of '{name}' takes ({got})", node)

    def _bind(
        self, sig: Signature, args: list[Value], kwargs: dict[str, Value]
    ) -> list[str] | None:
        """C++ arguments for a call of `sig`, or None where it does not fit."""
        positional = [a for a in sig.args if not a.keyword_only and a.type != "options"]
        if len(args) > len(positional):
            return None
        given = {p.name: v for p, v in zip(positional, args)}
        options = {
            k: kwargs[k]
            for k in ("dtype", "device")
            if k in kwargs and k not in [a.name for a in sig.args]
        }
        if options and not any(a.type == "options" for a in sig.args):
            return None
        kwargs = {k: v for k, v in kwargs.items() if k not in options}
        for key, value in kwargs.items():
            if key in given or key not in [a.name for a in sig.args]:
                return None
            given[key] = value
        out: list[str] = []
        for param in sig.args:
            if param.type == "options":
                parts = [
                    options[k].cpp if k in options else "std::nullopt" for k in ("dtype", "device")
                ]
                out.append(f"expr::options({', '.join(parts)})")
                continue
            if param.name not in given:
                if param.cpp_default is None:
                    return None
                out.append(param.cpp_default)
                continue
            text = self._argument(given[param.name], param)
            if text is None:
                return None
            out.append(text)
        return out

    def _argument(self, value: Value, param: Argument) -> str | None:
        want, have, cpp = type_of(param.type), value.type, value.cpp
        base = want.removesuffix("?")
        if have == "*":
            return cpp
        if have == "0":
            if want == "T":
                return "Tensor()"
            return "nullptr" if want == "G" else ("std::nullopt" if want.endswith("?") else None)
        if base == "T":
            if have == "T":
                return cpp
            return (
                f"Tensor(Scalar({self._number(value) if have != 'S' else cpp}))"
                if have in (*NUMBERS, "S?")
                else None
            )
        if base == "N":
            if have == "N":
                return f"OptInts(IntSpan({cpp}))" if want.endswith("?") else cpp
            if have == "N?":
                return f"expr::opt_ints({cpp})" if want.endswith("?") else f"IntSpan(*{cpp})"
            if have == "I":
                text = f"IntSpan(DimVector({max(param.repeat, 1)}, {cpp}))"
                return f"OptInts({text})" if want.endswith("?") else text
            return None
        if base == "S":
            if have in ("I", "F", "B"):
                return f"OptScalar(Scalar({cpp}))" if want.endswith("?") else f"Scalar({cpp})"
            return cpp if have in ("S", "S?") else None
        if base == "F":
            if have == "S":
                return f"({cpp}).to_double()"
            return cpp if have in ("F", "I", "F?", "B") else None
        if base == "I":
            return (
                cpp if have in ("I", "I?", "B") and (want.endswith("?") or have != "I?") else None
            )
        if base == "M" and have == "Y":
            return f"expr::memory_format({cpp})"
        if base == "L" and have == "L":
            return cpp
        return (
            cpp
            if str(have).removesuffix("?") == base
            and (want.endswith("?") or not str(have).endswith("?"))
            else None
        )

    def _printable(self, value: Value) -> str:
        if value.type == "S":
            return value.cpp
        if value.type == "N":
            return f"IntSpan({value.cpp})"
        if isinstance(value.type, str) and value.type.endswith("?"):
            return f"{value.cpp}.value()"
        if value.type == "T":
            return f"IntSpan({value.cpp}.sizes())"
        return value.cpp


def _assigned(tree: ast.AST) -> set[str]:
    """Names that statements inside `tree` assign."""
    targets = [
        n.targets[0] if isinstance(n, ast.Assign) else n.target
        for n in ast.walk(tree)
        if isinstance(n, (ast.Assign, ast.AugAssign))
    ]
    return {t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)}


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def names_used(text: str) -> set[str]:
    """Every plain name in an expression or body."""
    return {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}


# what a backward node may keep of a tensor instead of the tensor
# What a node keeps of a tensor whose values no formula reads: C++ type and the expression's.
FACT_TYPES = {
    "sizes": ("DimVector", "N"),
    "dtype": ("DType", "D"),
    "dim": ("int64_t", "I"),
    "numel": ("int64_t", "I"),
    "strides": ("DimVector", "N"),
    "storage_offset": ("int64_t", "I"),
    "device": ("Device", "V"),
    "is_complex": ("bool", "B"),
    "layouts": ("TensorList", "L"),  # of a list: tensors without memory
}


def metadata_only(text: str, name: str) -> set[str] | None:
    """The facts (sizes, dtype, ...) of tensor `name` in `text`; None where it uses more."""
    facts: set[str] = set()
    inside: set[ast.AST] = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and not node.args
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == name
            and node.func.attr in FACT_TYPES
        ):
            facts.add(node.func.attr)
            inside.add(node.func.value)
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "needs"
        ):
            inside.add(node.args[0])
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == name and node not in inside:
            return None
    return facts
