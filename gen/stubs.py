"""Type stubs: what editors and type checkers read of the operators and of what C++ defines.

``taeda/_C.pyi`` has Tensor and the classes written in C++ (stub_head.pyi.in), ``_operators.pyi`` the
functions of ``torch``, ``__init__.pyi`` the names of the package, of which Python's are read from its
sources; one file more for each module whose functions come from the table. Modules written in
Python have their types in their own text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from .op import Op
from .python import Call, Names, python_names
from .schema import Argument
from .signatures import annotation, is_spread, python_name, returned, shown, starred

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "taeda"
HEAD = Path(__file__).with_name("stub_head.pyi.in")
# What Python reads besides this folder: CMake configures again when one of them changes.
METHOD_FILES = ("_tensor.py", "_sparse_methods.py", "_functions/methods.py")
HANDWRITTEN = ("_functional.py", "_unique.py")  # whose functions take the place of operators
MODULES = ("linalg", "fft", "special")

IMPORTS = """\
# Generated from the operator table.
from collections.abc import Callable, Sequence
from typing import Any, Self, overload

from taeda import return_types as _return_types
from taeda._C import (
    Generator,
    Size,
    Tensor,
    _bool,
    _complex,
    _Device,
    _dtype,
    _float,
    _int,
    _layout,
    _memory_format,
    _Number,
    _str,
)
"""
_NAME = re.compile(
    r"\b(int|float|bool|complex|str|dtype|device|layout|memory_format|Number|Device)\b"
)
_DTYPE = re.compile(r'^  X\(k\w+, +[\w:<>]+, +"(\w+)", +"(\w*)", +"(\w+)"', re.M)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the package -> text."""
    names = python_names(ops)
    python = {name for file in HANDWRITTEN for name in _functions(PACKAGE / file)}
    files = {
        "_C.pyi": _extension(names),
        "_operators.pyi": "\n".join([IMPORTS, *_module(names, "torch", python)]),
        "return_types.pyi": _result_types(ops),
        "__init__.pyi": _package(),
        "nn/functional.pyi": _nn_functional(names),
    }
    for module in MODULES:
        head = _imports_of(PACKAGE / f"{module}.py")
        files[f"{module}.pyi"] = "\n".join([IMPORTS, *head, *_module(names, module)])
    return {name: text.rstrip() + "\n" for name, text in files.items()}


# --- signatures ---


def aliased(annotation: str) -> str:
    """int as _int: within Tensor, int is a method, and in the package a dtype."""
    return _NAME.sub(r"_\1", annotation)


def _parameter(op: Op, a: Argument) -> str:
    default = "..." if a.base.name == "memory_format" and a.default != "None" else a.default
    kind = aliased(annotation(op, a))
    return f"{python_name(a)}: {kind}" + ("" if default is None else f" = {default}")


def _signatures(name: str, call: Call, method: bool) -> list[str]:
    """The declarations of one overload: two where its sizes may be arguments of their own."""
    args = call.arguments
    parts = [_parameter(call.op, a) for a in args]
    if method:
        parts[0] = "self"
    result = aliased(_result(call, method))
    own = [a for a in args if not a.keyword_only][method:]
    rows = [starred(parts, args)]
    if len(own) == 1 and is_spread(own[0]):  # view(2, 3) for view((2, 3))
        spread = [*parts]
        spread[args.index(own[0])] = f"*{own[0].name}: _int"
        rows.append(spread)
    return [f"def {name}({', '.join(row)}) -> {result}: ..." for row in rows]


def _result(call: Call, method: bool) -> str:
    if method and (call.inplace or call.op.mutates):
        return "Self"
    return f"_return_types.{call.op.name}" if call.named else returned(call)


def _declarations(name: str, calls: list[Call], method: bool = False) -> list[str]:
    rows = [row for call in shown(calls) for row in _signatures(name, call, method)]
    rows = list(dict.fromkeys(rows))
    return rows if len(rows) == 1 else [line for row in rows for line in ("@overload", row)]


def _module(names: Names, owner: str, without: Iterable[str] = ()) -> list[str]:
    """The functions of a module."""
    out = []
    for (place, name), calls in names.items():
        if place == owner and name not in without:
            out += _declarations(name, calls)
    return out


# --- files ---


def _dtypes() -> list[tuple[str, str, str]]:
    """(name, other name or "", PyTorch's class name) of each dtype."""
    return _DTYPE.findall((ROOT / "include" / "taeda" / "dtype.h").read_text())


def _extension(names: Names) -> str:
    """taeda._C: the classes of C++, the dtypes, Tensor."""
    dtypes = _dtypes()
    named = [name for row in dtypes for name in row[:2] if name]
    out = [HEAD.read_text(), *(f"{name}: dtype" for name in named), ""]
    python = {name: text for file in METHOD_FILES for name, text in _methods(PACKAGE / file)}
    head = set(re.findall(r"^    def (\w+)", out[0].partition("class _TensorMembers")[2], re.M))
    out += ["class Tensor(_TensorMembers):", '    """An array whose operators are recorded."""']
    for (owner, name), calls in names.items():
        if owner == "Tensor" and name not in python and name not in head:
            out += [f"    {line}" for line in _declarations(name, calls, method=True)]
    out += [f"    {text}" for name, text in python.items() if name not in head]
    out += ["", *(f"class {row[2]}Tensor(Tensor): ..." for row in dtypes), ""]
    return "\n".join(out)


def _nn_functional(names: Names) -> str:
    """taeda.nn.functional: the table's functions, those with Python of their own, some of torch's."""
    tree = ast.parse((PACKAGE / "nn" / "functional.py").read_text())
    from_python: set[str] = set()
    lines = []
    for part in _parts(tree):
        path = PACKAGE / "nn" / "_functional" / f"{part}.py"
        made = (n for n in _made(path) if ("nn.functional", n) not in names)
        found = [*_functions(path), *made]
        from_python.update(found)
        listed = ", ".join(f"{n} as {n}" for n in found)
        lines.append(f"from taeda.nn._functional.{part} import {listed}")
    shared = [n for n in _assigned(tree, "_SHARED") if ("torch", n) in names]
    listed = ", ".join(f"{n} as {n}" for n in shared)
    lines.append(f"from taeda._operators import {listed}")
    lines.append("from taeda._functions.layers import conv_tbc as conv_tbc")
    return "\n".join(
        [IMPORTS, *lines, "", *_module(names, "nn.functional", {*from_python, *shared})]
    )


def _result_types(ops: list[Op]) -> str:
    """taeda.return_types: tuples with names."""
    out = ["# Generated from the operator table.", "from taeda._C import Tensor"]
    out += ["", "all_return_types: list[type]", ""]
    out += [
        "class histogram(tuple[Tensor, Tensor]):",
        *_fields({"hist": "Tensor", "bin_edges": "Tensor"}),
    ]
    out += ["class histogramdd(tuple[Tensor, tuple[Tensor, ...]]):"]
    out += _fields({"hist": "Tensor", "bin_edges": "tuple[Tensor, ...]"})
    for op in {op.name: op for op in ops if op.named and op.python}.values():
        kinds = ", ".join(aliased(r.base.python) for r in op.sig.returns)
        out.append(f"class {op.name}(tuple[{kinds}]):")
        out += _fields({r.name: aliased(r.base.python) for r in op.sig.returns})
    out += [f"{n}_out = {n}" for n in re.findall(r"^class (\w+)", "\n".join(out), re.M)]
    out.append("def pytree_register_structseq(cls: type) -> None: ...")
    return "\n".join(out)


def _fields(kinds: dict[str, str]) -> list[str]:
    """The named parts of a tuple."""
    rows = (("    @property", f"    def {n}(self) -> {kind}: ...") for n, kind in kinds.items())
    return [line for row in rows for line in row]


def _package() -> str:
    """taeda itself: what __init__.py imports, and what it loads when it is first read."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    out = [
        "# Generated from the package's __init__.py.",
        "from math import e as e, inf as inf, nan as nan, pi as pi",
        "from taeda._C import *",
        "from taeda._operators import *",
        "from taeda.version import __version__ as __version__",
    ]
    for file in HANDWRITTEN:
        found = _functions(PACKAGE / file)
        listed = ", ".join(f"{n} as {n}" for n in found)
        out.append(f"from taeda.{file.removesuffix('.py')} import {listed}")
    for module, names in _assigned_pairs(tree, "_LAZY"):
        if names:
            listed = ", ".join(f"{n} as {n}" for n in names)
            out.append(f"from {module} import {listed}")
    out.append("from taeda.storage import TypedStorage as _TypedStorage")
    out += [f"class {row[2]}Storage(_TypedStorage): ..." for row in _dtypes()]
    parts = sorted(
        _assigned(tree, "_SUBMODULES") | _assigned(tree, "_NOT_TORCHS") - {"annotations", "summary"}
    )
    listed = ", ".join(f"{n} as {n}" for n in parts)
    out += [f"from taeda import _C as _C, {listed}", "newaxis: None"]
    return "\n".join(out)


# --- what Python's sources define ---


def _functions(path: Path) -> dict[str, ast.FunctionDef]:
    """Public functions of a module, by their names."""
    tree = ast.parse(path.read_text())
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {node.name: node for node in found if not node.name.startswith("_")}


def _parts(tree: ast.Module) -> list[str]:
    """The files of _functional that nn.functional takes its functions from."""
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom))
    return [a.name for node in imports if node.module == "_functional" for a in node.names]


def _made(path: Path) -> list[str]:
    """Public functions that a module assigns: max_pool1d, max_pool1d_with_indices = ..."""
    targets: list[ast.expr] = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign):
            first = node.targets[0]
            targets += first.elts if isinstance(first, ast.Tuple) else [first]
    found = [t.id for t in targets if isinstance(t, ast.Name)]
    return [name for name in found if not name.startswith("_") and not name.isupper()]


def _imports_of(path: Path) -> list[str]:
    """Public names that a small module imports, as its stub has to say it."""
    out = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            for a in node.names:
                if a.asname and not a.asname.startswith("_"):
                    out += [f"from {node.module} import {a.name}", f"{a.asname} = {a.name}"]
        elif isinstance(node, ast.Assign) and '["torch"]' in ast.unparse(node.value).replace(
            "'", '"'
        ):
            name = ast.unparse(node.targets[0])
            out.append(f"from taeda._operators import {name} as {name}")
    return out


def _assigned(tree: ast.Module, name: str) -> set[str]:
    """The words of the string that a variable is made of."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            text = next(n.value for n in ast.walk(node) if isinstance(n, ast.Constant))
            return set(str(text).split())
    raise KeyError(name)


def _assigned_pairs(tree: ast.Module, name: str) -> list[tuple[str, list[str]]]:
    """The dictionary of names by module that _LAZY is made of."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            table = next(n for n in ast.walk(node) if isinstance(n, ast.Dict))
            return [(k, v.split()) for k, v in ast.literal_eval(table).items()]
    raise KeyError(name)


def _methods(path: Path) -> list[tuple[str, str]]:
    """(name, declaration) of each method of Tensor that a Python file defines."""
    found = []
    whole = path.name == "methods.py"
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.FunctionDef):
            continue
        marked = any(ast.unparse(d) == "_method" for d in node.decorator_list)
        first = node.args.args[:1]
        loaded_later = whole and first and first[0].arg == "self" and node.name[:1] != "_"
        if marked or loaded_later:
            found.append((node.name, _declaration(node)))
    return found


def _declaration(node: ast.FunctionDef) -> str:
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
