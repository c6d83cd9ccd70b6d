"""What Python's sources define, as the stubs have to say it: functions, methods, imports."""

from __future__ import annotations

import ast
import copy
import re
from functools import cache
from pathlib import Path

from .declarations import aliased

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "taeda"
read: set[Path] = set()  # the files that stubs were made of


@cache
def text(path: Path) -> str:
    read.add(path)
    return path.read_text()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


def functions(path: Path) -> list[str]:
    """The public functions of a module."""
    found = (node.name for node in tree(path).body if isinstance(node, ast.FunctionDef))
    return [name for name in found if not name.startswith("_")]


def parts(module: ast.Module) -> list[str]:
    """The files of _functional that nn.functional takes its functions from."""
    imports = (node for node in module.body if isinstance(node, ast.ImportFrom))
    return [a.name for node in imports if node.module == "_functional" for a in node.names]


def made(path: Path) -> list[str]:
    """Public functions that a module assigns: max_pool1d, max_pool1d_with_indices = ..."""
    targets: list[ast.expr] = []
    for node in tree(path).body:
        if isinstance(node, ast.Assign):
            first = node.targets[0]
            targets += first.elts if isinstance(first, ast.Tuple) else [first]
    found = [t.id for t in targets if isinstance(t, ast.Name)]
    return [name for name in found if not name.startswith("_") and not name.isupper()]


def imports_of(path: Path) -> list[str]:
    """Public names that a small module imports or takes from torch, as its stub has to say it."""
    out = []
    for node in tree(path).body:
        match node:
            case ast.ImportFrom():
                for a in node.names:
                    if a.asname and not a.asname.startswith("_"):
                        out += [f"from {node.module} import {a.name}", f"{a.asname} = {a.name}"]
            case ast.Assign([target], ast.Subscript(ast.Subscript(_, ast.Constant("torch")), _)):
                name = ast.unparse(target)
                out.append(f"from taeda._operators import {name} as {name}")
    return out


def _assignment(module: ast.Module, name: str) -> ast.Assign:
    for node in module.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node
    raise KeyError(name)


def words(module: ast.Module, name: str) -> set[str]:
    """The words of the string that a variable is made of."""
    nodes = ast.walk(_assignment(module, name))
    return set(str(next(n.value for n in nodes if isinstance(n, ast.Constant))).split())


def listed(path: Path) -> list[str]:
    """``__all__`` of a module."""
    value: list[str] = ast.literal_eval(_assignment(tree(path), "__all__").value)
    return value


def names_by_module(module: ast.Module, name: str) -> list[tuple[str, list[str]]]:
    """The dictionary of words by name, as of names by module, that a variable is made of."""
    table = next(n for n in ast.walk(_assignment(module, name)) if isinstance(n, ast.Dict))
    return [(key, value.split()) for key, value in ast.literal_eval(table).items()]


def methods(path: Path, later: bool) -> dict[str, str]:
    """The declarations of Tensor's methods that a file defines: those marked @_method or, of one
    that is loaded `later`, all public functions of self."""
    found = {}
    for node in tree(path).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marked = any(ast.unparse(d) == "_method" for d in node.decorator_list)
        first = [a.arg for a in node.args.args[:1]]
        if marked or (later and first == ["self"] and not node.name.startswith("_")):
            found[node.name] = declaration(node)
    return found


def declaration(function: ast.FunctionDef) -> str:
    """A method as the stub declares it."""
    node = copy.deepcopy(function)
    args = node.args
    for a in [*args.args, *args.kwonlyargs, args.vararg, args.kwarg]:
        if a is not None and a.annotation is not None:
            a.annotation = ast.parse(aliased(ast.unparse(a.annotation)), mode="eval").body
    args.args[0].annotation = None
    result = aliased(ast.unparse(node.returns)) if node.returns else "Any"
    if node.name.endswith("_") and not node.name.endswith("__") and result == "Tensor":
        result = "Self"
    text = ast.unparse(args)
    text = re.sub(r"=\s*[A-Za-z_]\w*\.[\w.]+", "=...", text)  # defaults that the stub cannot name
    return f"def {node.name}({text}) -> {result}: ..."
