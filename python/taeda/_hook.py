"""Makes ``import torch`` mean taeda: what ``python -m taeda`` installs before it runs a program.

The finder serves this process and its forks; other Python processes that the program starts inherit
a search path on which the first ``torch`` is ``_as_torch/torch``, which installs the finder there.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Sequence
from typing import Any


def _as_torch(name: str) -> str:
    """torch.nn for taeda.nn."""
    return "torch" + name.removeprefix("taeda")


class _NamedLoader(importlib.machinery.SourceFileLoader):
    """Runs a module of taeda under torch's name, which its classes and functions take over."""

    def exec_module(self, module: types.ModuleType) -> None:
        code = self.get_code(self.name)
        assert code is not None
        name = module.__name__ = _as_torch(self.name)
        sys.modules[name] = module  # where dataclasses and pickle look for a class's module
        try:
            exec(code, module.__dict__)
        except BaseException:
            sys.modules.pop(name, None)
            raise


class _AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Resolves ``torch`` and ``torch.X`` to the module objects of ``taeda`` and ``taeda.X``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith("taeda."):
            found = importlib.machinery.PathFinder.find_spec(fullname, path, target)
            if found is not None and type(found.loader) is importlib.machinery.SourceFileLoader:
                found.loader = _NamedLoader(fullname, found.loader.path)
            return found
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        name = "taeda" + fullname.removeprefix("torch")
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, origin=name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        assert spec.origin is not None
        module = importlib.import_module(spec.origin)
        self._own_spec = (module, module.__spec__)
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """It has run already; only its own spec is put back, which the import system replaced."""
        found, spec = self._own_spec
        found.__spec__ = spec


def _rename(namespace: dict[str, Any]) -> None:
    """Gives torch's name to the classes and functions of a namespace that have taeda's."""
    for value in list(namespace.values()):
        owner = getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType | types.MethodType) or value is None:
            continue
        if isinstance(value, type) and not isinstance(owner, str):  # a property of its objects
            owner = "taeda"
        if isinstance(owner, str) and owner.partition(".")[0] == "taeda" and callable(value):
            value.__module__ = _as_torch(owner)


def _name_as_torch() -> None:
    """Modules, classes and functions say torch instead of taeda from here on: what is loaded is
    renamed, what is loaded later gets the name from `_NamedLoader`."""
    from taeda import _C

    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "taeda" and isinstance(module, types.ModuleType):
            module.__name__ = _as_torch(name)
            sys.modules[module.__name__] = module
            _rename(vars(module))
    for functions in _C._functions.values():
        _rename(functions)


def install() -> None:
    """From here on, ``import torch`` and ``import torch.nn`` give taeda and taeda.nn, whose modules
    and classes have torch's names."""
    import taeda

    if sys.modules.get("torch", taeda) is not taeda:
        raise RuntimeError("torch is already imported; run the program with 'python -m taeda'")
    sys.modules["torch"] = taeda
    if not any(isinstance(finder, _AliasFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())
        _name_as_torch()


def check_python() -> None:
    """ImportError where the core in this package is built for another Python than runs here."""
    package = os.path.dirname(os.path.abspath(__file__))
    cores = [name for name in os.listdir(package) if name.startswith("_C.") and ".so" in name]
    if not cores or any("_C" + end in cores for end in importlib.machinery.EXTENSION_SUFFIXES):
        return
    raise ImportError(
        f"taeda in {package} is built for another Python ({', '.join(cores)}) than the one that "
        f"runs here, {sys.executable} ({sys.version.split()[0]}). Processes that a program under "
        "`python -m taeda` starts need its Python, sys.executable.",
        name="taeda._C",
    )


def _flags_and_program(command: Sequence[str]) -> tuple[str, list[str]]:
    """The letters of a Python command's flags, and what follows them: a script, -c or -m."""
    flags = ""
    for place, argument in enumerate(command[1:], start=1):
        if not argument.startswith("-") or argument in ("-", "-c", "-m"):
            return flags, list(command[place:])
        if not argument.startswith("--"):
            flags += argument[1:]
    return flags, []


def _mentions_torch(program: list[str], folder: str) -> bool:
    """Whether the text that a Python command would run imports torch, as far as one can see."""
    if program[:1] == ["-c"]:
        text = " ".join(program[1:2])
    elif program and not program[0].startswith("-"):
        try:
            with open(os.path.join(folder, program[0]), encoding="utf-8", errors="replace") as file:
                text = file.read(1 << 20)
        except OSError:
            return False
    else:
        return False
    import re

    torch = r"(?:^|[;:\n])\s*(?:from\s+torch\b|import\s[^;\n#]*\btorch\b)"
    return re.search(torch, text) is not None


def _refuse_isolated(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: no child that would import another torch because it ignores PYTHONPATH."""
    if event != "subprocess.Popen":
        return
    executable, command, folder, _ = arguments
    if not isinstance(command, list | tuple):
        return
    try:
        words = [os.fsdecode(word) for word in command]
    except TypeError:
        return
    name = os.path.basename(os.fsdecode(executable) if executable else (words or [""])[0])
    if not name.startswith("python"):
        return
    flags, program = _flags_and_program(words)
    if set(flags) & set("IE") and _mentions_torch(program, os.fsdecode(folder or "")):
        from taeda import _shim

        if _shim.is_installed():
            return
        raise RuntimeError(
            f"{' '.join(words[:3])}: with -I or -E a Python process ignores PYTHONPATH, by which "
            "the children of `python -m taeda` import taeda as torch; this one would import "
            "another torch, or none. Leave the flag out, or start it with `-m taeda` before the "
            "program."
        )


def install_in_children() -> None:
    """The same for Python processes that this one starts. Those that -I or -E would keep from it
    raise RuntimeError here, where it can be seen that they import torch."""
    sys.addaudithook(_refuse_isolated)
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_as_torch")
    inherited = os.environ.get("PYTHONPATH", "")
    if folder not in inherited.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [folder, inherited]))
    if folder not in sys.path:  # what multiprocessing hands to the processes it spawns
        sys.path.insert(1, folder)
