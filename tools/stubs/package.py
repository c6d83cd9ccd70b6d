"""The stubs of the package, by file: what is taken from where."""

from __future__ import annotations

import re
from pathlib import Path

from gen.names import Names, python_names
from gen.op import Op
from gen.signatures import RETURNS

from . import foreach, sources
from .declarations import aliased, declarations, module
from .sources import PACKAGE

HEAD = Path(__file__).with_name("head.pyi.in")
DTYPES = sources.ROOT / "include" / "taeda" / "dtype.h"
# Methods of Tensor in Python; those of the last are loaded when one is first called.
METHOD_FILES = {"_tensor.py": False, "_sparse_methods.py": False, "_functions/methods.py": True}
HANDWRITTEN = ("_functional.py", "_unique.py")  # whose functions take the place of operators
WIDER = ("pool",)  # parts of nn.functional whose functions take more than the table's do
# Owners of functions -> the module that takes them from the table.
MODULES = {
    **{name: name for name in ("linalg", "fft", "special")},
    "signal.windows": "signal/windows",
    "masked": "masked/_ops",
}

IMPORTS = """\
# Generated from the operator table.
from builtins import bool as _bool
from builtins import complex as _complex
from builtins import float as _float
from builtins import int as _int
from builtins import str as _str
from collections.abc import Callable, Sequence
from typing import Any, Self, overload

from taeda import return_types as _return_types
from taeda._C import (
    Generator,
    Size,
    Tensor,
    _Device,
    _dtype,
    _layout,
    _memory_format,
    _Number,
)
"""
_DTYPE = re.compile(r'^  X\(k\w+, +[\w:<>]+, +"(\w+)", +"(\w*)", +"(\w+)"', re.M)


def generate(ops: list[Op]) -> dict[str, str]:
    """Path below the package -> text."""
    names = python_names(ops)
    python = {name for file in HANDWRITTEN for name in sources.functions(PACKAGE / file)}
    files = {
        "_C.pyi": _extension(names),
        "_operators.pyi": "\n".join([IMPORTS, *module(names, "torch", python), *_foreach(names)]),
        "return_types.pyi": _result_types(ops),
        "__init__.pyi": _package(names),
        "nn/functional.pyi": _nn_functional(names),
    }
    for owner, path in MODULES.items():
        head = sources.imports_of(PACKAGE / f"{path}.py")
        files[f"{path}.pyi"] = "\n".join([IMPORTS, *head, *module(names, owner)])
    return {name: text.rstrip() + "\n" for name, text in files.items()}


def _foreach(names: Names) -> list[str]:
    return [line for lines in foreach.functions(names).values() for line in lines]


def _imported(source: str, names: list[str]) -> str:
    """An import that makes the names the stub's own."""
    return f"from {source} import {', '.join(f'{name} as {name}' for name in names)}"


def _dtypes() -> list[tuple[str, str, str]]:
    """(name, other name or "", PyTorch's class name) of each dtype."""
    return _DTYPE.findall(sources.text(DTYPES))


def _extension(names: Names) -> str:
    """taeda._C: the classes of C++, the dtypes, Tensor."""
    dtypes = _dtypes()
    head = sources.text(HEAD)
    out = [head, *(f"{name}: dtype" for row in dtypes for name in row[:2] if name), ""]
    python: dict[str, str] = {}
    for file, later in METHOD_FILES.items():
        python |= sources.methods(PACKAGE / file, later)
    declared = set(re.findall(r"^    def (\w+)", head.partition("class _TensorMembers")[2], re.M))
    out += ["class Tensor(_TensorMembers):", '    """An array whose operators are recorded."""']
    for (owner, name), calls in names.items():
        if owner == "Tensor" and name not in python and name not in declared:
            out += [f"    {line}" for line in declarations(name, calls, method=True)]
    out += [f"    {text}" for name, text in python.items() if name not in declared]
    out += ["", *(f"class {row[2]}Tensor(Tensor): ..." for row in dtypes), ""]
    return "\n".join(out)


def _nn_functional(names: Names) -> str:
    """taeda.nn.functional: the table's functions, those written in Python, some of torch's."""
    tree = sources.tree(PACKAGE / "nn" / "functional.py")
    from_python: set[str] = set()
    lines = []
    for part in sources.parts(tree):
        path = PACKAGE / "nn" / "_functional" / f"{part}.py"
        made = (n for n in sources.made(path) if part in WIDER or ("nn.functional", n) not in names)
        found = [*sources.functions(path), *made]
        from_python.update(found)
        lines.append(_imported(f"taeda.nn._functional.{part}", found))
    private = PACKAGE / "nn" / "_functional" / "private.py"  # found when they are asked for
    lines.append(_imported("taeda.nn._functional.private", sources.listed(private)))
    others = sources.words(tree, "_SHARED") - from_python
    shared = sorted(n for n in others if ("torch", n) in names)
    lines.append(_imported("taeda._operators", shared))
    lines.append(_imported("taeda._functions.layers", ["conv_tbc"]))
    lines += [_imported(*row) for row in sources.names_by_module(tree, "_ELSEWHERE")]
    lines.append("from enum import Enum")
    for name, members in sources.names_by_module(tree, "_SCALED"):
        numbered = "; ".join(f"{member} = {i}" for i, member in enumerate(members))
        lines += [f"class {name}(Enum): {numbered}"] if members else []
    own = module(names, "nn.functional", {*from_python, *shared})
    return "\n".join([IMPORTS, *lines, "", *own])


def _result_types(ops: list[Op]) -> str:
    """taeda.return_types: tuples with names."""
    out = ["# Generated from the operator table.", "from taeda._C import Tensor"]
    out += ["", "all_return_types: list[type]", ""]
    for op in {op.name: op for op in ops if op.named and op.python}.values():
        kinds = {r.name: aliased(RETURNS.get(r.type, r.base.python)) for r in op.sig.returns}
        out.append(f"class {op.name}(tuple[{', '.join(kinds.values())}]):")
        out += _fields(kinds)
    out += [f"{n}_out = {n}" for n in re.findall(r"^class (\w+)", "\n".join(out), re.M)]
    out.append("def pytree_register_structseq(cls: type) -> None: ...")
    out.append("def _tuple(name: str, fields: list[str]) -> type: ...")
    return "\n".join(out)


def _fields(kinds: dict[str, str]) -> list[str]:
    """The named parts of a tuple."""
    rows = (("    @property", f"    def {n}(self) -> {kind}: ...") for n, kind in kinds.items())
    return [line for row in rows for line in row]


def _package(names: Names) -> str:
    """taeda itself: what __init__.py imports, and what it loads when it is first read."""
    private = [name for owner, name in names if owner == "torch" and name.startswith("_")]
    private += foreach.functions(names)
    tree = sources.tree(PACKAGE / "__init__.py")
    out = [
        "# Generated from the package's __init__.py.",
        "from math import e as e, inf as inf, nan as nan, pi as pi",
        "from taeda._C import *",
        "from taeda._operators import *",
        "from taeda.version import __version__ as __version__",
        "from taeda._functional import _assert as _assert, _check as _check",
    ]
    for file in HANDWRITTEN:
        found = sources.functions(PACKAGE / file)
        out.append(_imported(f"taeda.{file.removesuffix('.py')}", found))
    lazy = sources.names_by_module(tree, "_LAZY")
    defined = {name for _, found in lazy for name in found}
    out.append(_imported("taeda._operators", [n for n in private if n not in defined]))
    out += [_imported(m, found) for m, found in lazy if found]
    # Dtypes whose names programs may mention, though no tensor has them.
    nominal = sources.words(sources.tree(PACKAGE / "_missing" / "parts.py"), "_DTYPES")
    out += [f"{name}: dtype" for name in sorted(nominal)] + ["class ScriptObject: ..."]
    out.append("from taeda.storage import TypedStorage as _TypedStorage")
    out += [f"class {row[2]}Storage(_TypedStorage): ..." for row in _dtypes()]
    parts = sources.words(tree, "_SUBMODULES") | sources.words(tree, "_NOT_TORCHS")
    parts -= {"annotations", "summary"}
    return "\n".join([*out, _imported("taeda", ["_C", *sorted(parts)]), "newaxis: None"])
