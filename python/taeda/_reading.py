"""``python -m taeda --check prog.py [folder...]``: the names of torch that taeda lacks, found by
reading a program.

The program, the files of the folders and what they import are parsed, never run. Reported are
dotted names that begin with a module, such as ``torch.fft.fft`` or ``F.conv2d``, and PyTorch's
methods of what is evidently a tensor: an argument that is annotated so, and what torch's functions
give. A name that only raises is reported where it is called, given to a call, a decorator or a base
class: importing it and asking isinstance work. Variables that are another name of a module, and
``getattr(torch, "name")``, are followed; a name that the program itself gives a value is its own.
Other names that strings spell are not seen, and those that packages for other devices add to torch
are left out. So is what the program expects to miss: names in a ``try`` that catches ImportError or
AttributeError, under ``if hasattr(...)`` for them, and under ``if
torch.distributed.is_initialized()`` and the like those of that module; and what takes their place
where they are there.
"""

from __future__ import annotations

import ast
import enum
import importlib
import os
import sys
import sysconfig
import tokenize
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any

import taeda

_EXPECTED = {"ImportError", "ModuleNotFoundError", "AttributeError", "Exception", "BaseException"}
_LIBRARIES = tuple(
    os.path.realpath(sysconfig.get_paths()[kind]) + os.sep
    for kind in ("stdlib", "purelib", "platlib")
)


# Modules that packages for other devices put into torch; PyTorch has none of them.
_OTHER_DEVICES = frozenset("dipu gcu hpu ipu mlu musa neuron npu sdaa xla".split())
_MISSING, _RAISES = "is missing", "raises when called"
# Functions that ask what an argument is and do not call it.
_ASKING = frozenset("callable getattr hasattr id isinstance issubclass repr str type".split())

# What PyTorch's Tensor has and this one lacks; other attributes of tensors are a program's own.
_TENSOR_LACKS = frozenset("_nested_tensor_size _nested_tensor_strides".split())
# Packages of PyTorch's, which read torch from inside.
_OF_PYTORCH = ("torch", "functorch", "torchgen")


def _is_of_a_library(name: str) -> bool:
    """Whether a program's own library, or one for other devices, puts the name there."""
    parts = name.split(".")
    if (parts[1:2] and parts[1] in _OTHER_DEVICES) or name == "torch.version.cann":
        return True
    if parts[1:2] == ["xpu"] and name.endswith("Tensor"):
        return True
    return parts[:2] in (["torch", "ops"], ["torch", "classes"]) and parts[2:3] not in (
        [], ["aten"], ["prims"], ["profiler"], ["load_library"]
    )  # fmt: skip


def _state(name: str) -> str | None:
    """Why a dotted name of torch does not work here; None where it does."""
    if _is_of_a_library(name):
        return None
    found: Any = taeda
    walked = "taeda"
    for part in name.split(".")[1:]:
        if not isinstance(found, ModuleType | type):
            return None  # an attribute of an object
        walked = f"{walked}.{part}"
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(walked)
            except ImportError:
                return _MISSING
        if getattr(found, "_only_raises", False) and not _is_as_good(found):
            return _RAISES
    return None


def _is_as_good(found: Any) -> bool:
    """Whether what is marked as raising does all that programs want: modules, names for values and
    what is named in ``except``."""
    return isinstance(found, ModuleType | enum.Enum) or (
        isinstance(found, type) and issubclass(found, enum.Enum | Exception)
    )


def _is_never_there(module: str) -> bool:
    """Whether a module says no to is_available() on every machine."""
    if module in ("torch.cuda", "torch.accelerator"):
        return False
    try:
        found = importlib.import_module(module.replace("torch", "taeda", 1))
        return not found.is_available()
    except (ImportError, AttributeError):
        return False


def _is_module_or_class(name: str) -> bool:
    """Whether a dotted name of torch is a module, class or function: of those a program reads more
    names, or calls them."""
    found: Any = taeda
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return isinstance(found, ModuleType) or callable(found)


def _gives_tensor(name: str) -> bool:
    """Whether a function of torch gives one tensor, as all its signatures say."""
    found: Any = taeda
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    own_name = name.rpartition(".")[2]
    lines = (getattr(found, "__doc__", None) or "").split("\n")
    signatures = [line for line in lines if line.startswith(f"{own_name}(")]
    return bool(signatures) and all(line.endswith("-> Tensor") for line in signatures)


def _bound_in(body: list[ast.stmt]) -> set[str]:
    """The names that a function's statements give a value, its inner functions' left out."""
    bound, nodes = set(), list[ast.AST](body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Global):
            return set()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        if not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda | ast.GeneratorExp):
            nodes += ast.iter_child_nodes(node)
    return bound


def _assigned(node: ast.AST) -> set[str]:
    """The names that assignments within a statement give a value."""
    targets = (t for n in ast.walk(node) if isinstance(n, ast.Assign) for t in n.targets)
    return {t.id for t in targets if isinstance(t, ast.Name)}


class _Reader(ast.NodeVisitor):
    """Collects a file's names of torch and the modules that it imports."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}  # local name -> torch.X
        self.names: list[tuple[int, str, str]] = []  # line, name, what would be reported
        self.used: set[int] = set()  # ids of the nodes of what is called, or may be
        self.seen: list[str] = []  # the same, and those that the program expects to miss
        self.imports: list[tuple[int, str]] = []  # how many dots, module
        self.expected: list[set[str] | None] = []  # of the blocks around; None: every name
        self.unavailable: list[str] = []  # modules that the blocks around ask for
        self.tensors: set[str] = set()  # the variables of the function that hold tensors
        self.stored: set[str] = set()  # names of torch that the program gives a value

    def _found(self, line: int, name: str, why: str = _MISSING) -> None:
        last = name.rpartition(".")[2]
        if any(f"{name}.".startswith(f"{stored}.") for stored in self.stored):
            return
        self.seen.append(name)
        if any(names is None or last in names for names in self.expected):
            return
        if not name.startswith(tuple(self.unavailable)):
            self.names.append((line, name, why))

    def _may_call(self, nodes: Iterable[ast.expr]) -> None:
        self.used |= {id(node) for node in nodes}

    def _dotted_getattr(self, node: ast.Call) -> str | None:
        """torch.name of getattr(torch, "name"), which has no default."""
        if getattr(node.func, "id", None) != "getattr" or len(node.args) != 2:
            return None
        owner, name = node.args
        if not isinstance(name, ast.Constant) or not isinstance(name.value, str):
            return None
        found = self._dotted(owner)
        return found and f"{found}.{name.value}"

    def visit_Call(self, node: ast.Call) -> None:
        if (name := self._dotted_getattr(node)) is not None:
            self._found(node.lineno, name)
            if id(node) in self.used:
                self._found(node.lineno, name, _RAISES)
        self._may_call([node.func])
        if getattr(node.func, "id", None) not in _ASKING:
            self._may_call([*node.args, *(keyword.value for keyword in node.keywords)])
        self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._may_call([*node.bases, *node.decorator_list])
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if id(node) in self.used and node.id in self.aliases:
            self._found(node.lineno, self.aliases[node.id], _RAISES)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            if alias.name.partition(".")[0] == "torch":
                self.aliases[alias.asname or "torch"] = alias.name if alias.asname else "torch"
                self._found(node.lineno, alias.name)
            else:
                self.imports.append((0, alias.name))

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        for alias in node.names:
            name = f"{module}.{alias.name}" if alias.name != "*" else module
            if node.level or module.partition(".")[0] != "torch":
                dot = "." if module and alias.name != "*" else ""
                self.imports.append((node.level, f"{module}{dot}{alias.name}".rstrip("*")))
            else:
                self.aliases[alias.asname or alias.name] = name
                self._found(node.lineno, name)

    def _dotted(self, node: ast.expr) -> str | None:
        """The name of torch that an expression spells."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if isinstance(node, ast.Call):
            name = self._dotted_getattr(node)
            return name and ".".join([name, *reversed(parts)])
        if isinstance(node, ast.Name) and node.id in self.aliases:
            return ".".join([self.aliases[node.id], *reversed(parts)])
        return None

    def visit_Attribute(self, node: ast.Attribute) -> None:
        name = self._dotted(node)
        if name is None and self._is_tensor(node.value):
            self.visit(node.value)
            method = getattr(taeda.Tensor, node.attr, None)
            if node.attr not in _TENSOR_LACKS and not hasattr(method, "_only_raises"):
                return
            name = f"torch.Tensor.{node.attr}"
        elif name is None:
            return self.generic_visit(node)
        if isinstance(node.ctx, ast.Load):
            self._found(node.lineno, name)
            if id(node) in self.used:
                self._found(node.lineno, name, _RAISES)

    # --- what holds a tensor ---

    def _is_tensor(self, node: ast.expr) -> bool:
        """Whether an expression evidently gives a tensor."""
        if isinstance(node, ast.Name):
            return node.id in self.tensors
        if isinstance(node, ast.BinOp):
            return self._is_tensor(node.left) or self._is_tensor(node.right)
        if not isinstance(node, ast.Call):
            return False
        name = self._dotted(node.func)
        if name is None and isinstance(node.func, ast.Attribute):
            name = f"torch.Tensor.{node.func.attr}" if self._is_tensor(node.func.value) else None
        return name is not None and _gives_tensor(name)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._may_call(node.decorator_list)
        for part in (*node.decorator_list, node.args, *filter(None, [node.returns])):
            self.visit(part)
        before, self.tensors = self.tensors, set(self.tensors)
        aliases, self.aliases = self.aliases, dict(self.aliases)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        names = {a.arg for a in arguments}
        self.tensors -= names
        self.tensors |= {
            a.arg
            for a in arguments
            if a.annotation and self._dotted(a.annotation) == "torch.Tensor"
        }
        for own in names | _bound_in(node.body):  # a variable of this name hides the module
            self.aliases.pop(own, None)
        for statement in node.body:
            self.visit(statement)
        self.tensors, self.aliases = before, aliases

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        is_tensor = self._is_tensor(node.value)
        name = self._dotted(node.value)
        for target in node.targets:
            names = {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
            self.tensors -= names
            if isinstance(target, ast.Name) and is_tensor:
                self.tensors |= names
            self.visit(target)
            if isinstance(target, ast.Name):
                self._rename(target.id, name)
            elif stored := self._dotted(target) if isinstance(target, ast.Attribute) else None:
                self.stored.add(stored)  # there from here on

    def _rename(self, variable: str, name: str | None) -> None:
        """A variable is another name for a name of torch, or no longer one."""
        if name is not None and _is_module_or_class(name):
            self.aliases[variable] = name
        elif variable != "torch" or name is None:
            self.aliases.pop(variable, None)

    def _rebinds(self, node: ast.For | ast.With | ast.NamedExpr) -> None:
        """Other statements that give names a value: what that is, is not known."""
        names = (n for n in ast.walk(node) if isinstance(n, ast.Name))
        bound = {n.id for n in names if isinstance(n.ctx, ast.Store)}
        self.tensors -= bound
        for name in bound - _assigned(node):
            self.aliases.pop(name, None)
        self.generic_visit(node)

    visit_For = visit_With = visit_NamedExpr = _rebinds  # type: ignore[assignment]

    def _under(self, expected: set[str] | None, nodes: list[Any]) -> None:
        self.expected.append(expected)
        for node in nodes:
            self.visit(node)
        self.expected.pop()

    def visit_Try(self, node: ast.Try) -> None:
        caught = {
            name.id if isinstance(name, ast.Name) else "Exception"
            for handler in node.handlers
            for name in (
                handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
            )
        }
        first = len(self.seen)
        self._under(None if caught & _EXPECTED else set(), node.body)
        # What takes the place of names that are there is never run.
        runs = not caught & _EXPECTED or _MISSING in map(_state, self.seen[first:])
        self._under(set() if runs else None, node.handlers)
        for other in (*node.orelse, *node.finalbody):
            self.visit(other)

    def _choose(self, test: ast.expr, body: list, other: list) -> None:
        asked = {
            str(call.args[1].value)
            for call in ast.walk(test)
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "hasattr"
            if len(call.args) == 2 and isinstance(call.args[1], ast.Constant)
        }
        modules = list(self._asked_modules(test))
        self.unavailable += modules
        self._under(asked, [test, *body])
        del self.unavailable[len(self.unavailable) - len(modules) :]
        self._under(set(), other)

    def _asked_modules(self, test: ast.expr) -> Iterator[str]:
        """torch.distributed. of a test that calls torch.distributed.is_initialized()."""
        for call in ast.walk(test):
            name = self._dotted(call.func) if isinstance(call, ast.Call) else None
            module, _, question = (name or "").rpartition(".")
            if question in ("is_available", "is_initialized") and _is_never_there(module):
                if not any(isinstance(n, ast.Not) for n in ast.walk(test)):
                    yield module + "."

    def visit_If(self, node: ast.If) -> None:
        self._choose(node.test, node.body, node.orelse)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._choose(node.test, [node.body], [node.orelse])


def _file_of(module: str, folders: list[str]) -> Iterator[str]:
    """The files that importing a module runs: it and its packages."""
    parts = module.split(".")
    if parts[0] in _OF_PYTORCH:
        return
    for folder in folders:
        if not os.path.exists(os.path.join(folder, parts[0])) and not os.path.exists(
            os.path.join(folder, parts[0] + ".py")
        ):
            continue
        for count in range(1, len(parts) + 1):
            path = os.path.join(folder, *parts[:count])
            for file in (os.path.join(path, "__init__.py"), path + ".py"):
                if os.path.isfile(file):
                    yield file
        return


def _imported(file: str, reader: _Reader, folders: list[str]) -> Iterator[str]:
    """The files that a file imports. In libraries only those beside it are searched relatively."""
    for level, module in reader.imports:
        if not level:
            yield from _file_of(module, folders)
            continue
        folder = os.path.dirname(file)
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        yield from _file_of(module, [folder]) if module else ()


def _read(file: str) -> _Reader | None:
    """What a file names; None for one of a library that has nothing to do with torch."""
    with tokenize.open(file) as stream:
        text = stream.read()
    reader = _Reader()
    if "torch" not in text and os.path.realpath(file).startswith(_LIBRARIES):
        return None
    reader.visit(ast.parse(text, file))
    return reader


def _given(paths: list[str]) -> list[str]:
    """The files named, and those of the folders named."""
    found = []
    for path in paths:
        if os.path.isdir(path):
            for folder, _, names in os.walk(path):
                found += [os.path.join(folder, name) for name in names if name.endswith(".py")]
        else:
            found.append(path)
    return sorted(found)


def findings(paths: list[str]) -> Iterator[tuple[str, int, str, str]]:
    """(file, line, name, why) for each name that does not work."""
    waiting = _given(paths)
    here = [p if os.path.isdir(p) else os.path.dirname(os.path.abspath(p)) for p in paths]
    folders = [*here, *filter(os.path.isdir, sys.path)]
    states: dict[str, str | None] = {}
    seen: set[str] = set()
    while waiting:
        file = waiting.pop(0)
        if (real := os.path.realpath(file)) in seen:
            continue
        seen.add(real)
        try:
            reader = _read(file)
        except (OSError, SyntaxError, UnicodeDecodeError, RecursionError) as error:
            yield file, getattr(error, "lineno", None) or 1, "", f"cannot be read: {error}"
            continue
        if reader is None:
            continue
        waiting += _imported(file, reader, folders)
        for line, name, why in reader.names:
            if name not in states:
                states[name] = _state(name)
            if states[name] == why:
                yield file, line, name, why


def main(paths: list[str]) -> int:
    """Prints the findings; 1 where there are any, 2 without a program."""
    if not paths or any(not os.path.exists(path) for path in paths):
        print("usage: python -m taeda --check PROGRAM [FOLDER...]", file=sys.stderr)
        return 2
    names = set()
    for file, line, name, why in findings(paths):
        names.add(name)
        print(f"{os.path.relpath(file)}:{line}: {name} {why}".replace(":  ", ": "))
    print(
        f"{len(names) or 'no'} names of torch that taeda lacks" if names else "nothing is missing"
    )
    return 1 if names else 0
