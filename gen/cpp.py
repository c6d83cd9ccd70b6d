"""The loaded table, and the translation of its entries' texts over it: expressions, by expr.py, and
the statements of ``expr:``, a function body in C++ from a definition in the table."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from .expr import Translator
from .op import Op
from .schema import Signature
from .text import indented, several
from .values import LOCAL_TYPES, Value

ERRORS = {f"{kind}Error": f"k{kind}" for kind in "Runtime Value Index Type NotImplemented".split()}


class Table:
    """The loaded operators, findable by name."""

    def __init__(self, ops: list[Op]):
        self.ops = ops
        self.called: set[str] = set()  # the overloads that translated texts call
        self.by_name: dict[str, list[Op]] = defaultdict(list)
        for op in ops:
            self.by_name[op.name].append(op)

    def overloads(self, name: str) -> list[Signature]:
        return [op.sig for op in self.by_name.get(name, [])]

    def takes_none(self, name: str, i: int) -> bool:
        """Whether the `i`th argument of all its overloads is optional."""
        found = self.overloads(name)
        return bool(found) and all(i < len(s.args) and s.args[i].optional for s in found)

    def is_pointwise(self, name: str) -> bool:
        return any(op.body == "pointwise" for op in self.by_name.get(name, []))

    def translator(self, op: Op, what: str = "", env: dict[str, Value] | None = None) -> Translator:
        """Translates the entry's texts, over its arguments or other names."""
        env = env or {a.name: Value(a.name, a.expr_type) for a in op.sig.args}
        return Translator(self.overloads, f"{op.where}: {what}{op.name}", env, self.called)


def one_pass(op: Op, formula: Value, call: Value, t: Translator) -> Value:
    """A gradient on dual numbers, or `formula` where the gradient is differentiated in turn."""
    read = ", ".join(["gy", *(t.env[a.name].cpp for a in op.sig.tensor_args)])
    asked = "differentiated_anywhere" if isinstance(op.dual, str) else "takes_formula"
    return Value(f"autograd::{asked}({read}) ? {formula.cpp} : {call.cpp}", "T")


def composite_body(op: Op, table: Table, text: str) -> list[str]:
    """The C++ of statements ending in return, or of one expression."""
    t = table.translator(op)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise t.fail(f"line {error.lineno} of expr: {error.msg}") from None
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        tree.body[0] = ast.Return(tree.body[0].value)
    body = _Body(t)
    # An argument that is assigned becomes a local copy.
    copies = sorted(_assigned(tree) & set(t.env))
    lines = [body.declare(name, f"{name}_var", t.env[name]) for name in copies]
    return [*lines, *body.statements(tree.body)]


class _Body:
    def __init__(self, translator: Translator, known: Iterable[str] = ()):
        self.translator, self.env = translator, translator.env
        self.locals = {*known}

    def statements(self, nodes: list[ast.stmt]) -> list[str]:
        return [line for node in nodes for line in self._statement(node)]

    def _block(self, nodes: list[ast.stmt]) -> list[str]:
        """A branch: what is first assigned in it is known there only."""
        translator = replace(self.translator, env=dict(self.env))
        return indented(_Body(translator, self.locals).statements(nodes))

    def _statement(self, node: ast.stmt) -> list[str]:
        t = self.translator
        match node:
            case ast.Return(ast.Tuple(values)):
                return [f"return {several([t.visit(value).cpp for value in values])};"]
            case ast.Return(ast.expr() as value):
                return [f"return {t.visit(value).cpp};"]
            case ast.Assign([ast.Tuple(targets)], value):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                return [self._unpack(names, t.visit(value), node)]
            case ast.Assign([ast.Name(name)], value):
                made = t.visit(value)
                if name in self.locals:
                    return [f"{self.env[name].cpp} = {made.cpp};"]
                return [self.declare(name, f"{name}_", made)]
            case ast.If():
                test = t.truth(t.visit(node.test))
                orelse = ["} else {", *self._block(node.orelse)] if node.orelse else []
                return [f"if ({test}) {{", *self._block(node.body), *orelse, "}"]
            case ast.Raise(ast.Call(ast.Name(error), [ast.Constant(str(message))])):
                return [f"fail(ErrorKind::{ERRORS[error]}, {t.message(message)});"]
            case ast.Expr(value):
                return [t.visit(value).cpp + ";"]
        raise t.unknown(node)

    def _unpack(self, names: list[str], value: Value, node: ast.AST) -> str:
        if not isinstance(value.type, tuple):
            raise self.translator.fail("several targets need several results", node)
        self.env |= {name: Value(f"{name}_", kind) for name, kind in zip(names, value.type)}
        self.locals |= {*names}
        return f"auto [{', '.join(f'{n}_' for n in names)}] = {value.cpp};"

    def declare(self, name: str, local: str, value: Value) -> str:
        self.env[name] = Value(local, value.type)
        self.locals.add(name)
        return f"{LOCAL_TYPES.get(value.type, 'auto')} {local} = {value.cpp};"


def _assigned(tree: ast.AST) -> set[str]:
    """Names that statements inside `tree` assign."""
    targets = [n.targets[0] for n in ast.walk(tree) if isinstance(n, ast.Assign)]
    return {t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)}
