"""The statements of ``expr:``: a function body in C++ from a definition in the table."""

from __future__ import annotations

import ast

from .expr import Translator
from .schema import SchemaError
from .text import indented
from .values import LOCAL_TYPES, Value, returned

ERRORS = {
    "RuntimeError": "kRuntime",
    "ValueError": "kValue",
    "IndexError": "kIndex",
    "TypeError": "kType",
    "NotImplementedError": "kNotImplemented",
}


def body(translator: Translator, text: str, returns: list[str]) -> list[str]:
    """Statements ending in return, or one expression; ``returns`` are the results' C++ types."""
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise translator.fail(f"line {error.lineno} of expr: {error.msg}") from None
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        tree.body[0] = ast.Return(tree.body[0].value)
    return _Body(translator, tree, returns).lines()


class _Body:
    def __init__(self, translator: Translator, tree: ast.Module, returns: list[str]):
        self.translator = translator
        self.env = translator.env
        self.tree = tree
        self.returns = returns
        self.locals: set[str] = set()

    def lines(self) -> list[str]:
        # An argument that is assigned becomes a local copy.
        copies = sorted(_assigned(self.tree) & set(self.env))
        lines = [self._declare(name, f"{name}_var", self.env[name]) for name in copies]
        return [*lines, *self._statements(self.tree.body)]

    def _statements(self, nodes: list[ast.stmt]) -> list[str]:
        return [line for node in nodes for line in self._statement(node)]

    def _block(self, nodes: list[ast.stmt]) -> list[str]:
        """A branch: what is first assigned in it is known there only."""
        env, names = dict(self.env), set(self.locals)
        lines = indented(self._statements(nodes))
        self.env.clear()
        self.env |= env
        self.locals = names
        return lines

    def _statement(self, node: ast.stmt) -> list[str]:
        t = self.translator
        match node:
            case ast.Return(value):
                return [f"return {self._returned(value)};"]
            case ast.Assign([target], value):
                return self._assign(target, t.visit(value))
            case ast.If():
                return self._if(node)
            case ast.Raise(ast.Call(ast.Name(error), [ast.Constant(str(message))])):
                return [f"fail(ErrorKind::{ERRORS[error]}, {t.message(message)});"]
            case ast.Expr(value):
                return [t.visit(value).cpp + ";"]
        raise t.unknown(node)

    def _if(self, node: ast.If) -> list[str]:
        test = self.translator.truth(self.translator.visit(node.test))
        orelse = ["} else {", *self._block(node.orelse)] if node.orelse else []
        return [f"if ({test}) {{", *self._block(node.body), *orelse, "}"]

    def _assign(self, target: ast.expr, value: Value) -> list[str]:
        if isinstance(target, ast.Tuple):
            return self._unpack(target, value)
        name = target.id  # type: ignore[attr-defined]
        if name in self.locals:
            local = self.env[name]
            as_tensor = local.type == "T" and value.type != "T"
            return [f"{local.cpp} = {f'Tensor({value.cpp})' if as_tensor else value.cpp};"]
        return [self._declare(name, f"{name}_", value)]

    def _unpack(self, target: ast.Tuple, value: Value) -> list[str]:
        if not isinstance(value.type, tuple):
            raise self.translator.fail(
                "several targets need an operator with several results", target
            )
        names = [t.id for t in target.elts]  # type: ignore[attr-defined]
        for name, kind in zip(names, value.type):
            self._add_local(name, f"{name}_", kind)
        return [f"auto [{', '.join(f'{n}_' for n in names)}] = {value.cpp};"]

    def _declare(self, name: str, local: str, value: Value) -> str:
        self._add_local(name, local, value.type)
        return f"{LOCAL_TYPES.get(value.type, 'auto')} {local} = {value.cpp};"

    def _add_local(self, name: str, local: str, kind: str | tuple[str, ...]) -> None:
        self.env[name] = Value(local, kind)
        self.locals.add(name)

    def _returned(self, node: ast.expr | None) -> str:
        if node is None:
            raise SchemaError(f"{self.translator.where}: 'return' needs a value")
        visit = self.translator.visit
        if isinstance(node, ast.Tuple):
            parts = [returned(visit(e), kind) for e, kind in zip(node.elts, self.returns)]
            return "{" + ", ".join(parts) + "}"
        value = visit(node)
        return returned(value, self.returns[0]) if len(self.returns) == 1 else value.cpp


def _assigned(tree: ast.AST) -> set[str]:
    """Names that statements inside `tree` assign."""
    targets = [n.targets[0] for n in ast.walk(tree) if isinstance(n, ast.Assign)]
    return {t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)}
